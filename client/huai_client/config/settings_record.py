"""The record of the settings by which a tree was made, in its parts.  Pure.

A record is a line for keys of client.toml (`tree_settings.RECORDED`), then `filters.Rules.key`: a
line for the modes, and the filter.
"""

from typing import NamedTuple

from huai_client.config.modes import Modes, split_key

LINE = "tree "
"""Begins the line of the keys; no rule of rsync's begins so."""


class TreeSettings(NamedTuple):
    """One record in its parts."""

    keys: str | None
    """The line of the keys; None: a version that recorded none."""
    modes: Modes
    rules: str
    """The filter, a line for each rule."""

    @classmethod
    def parse(cls, record: str) -> "TreeSettings":
        """Take a record apart; `UnknownModesError` for a policy of another version."""
        line, _, rest = record.partition("\n")
        if line.startswith(LINE):
            return cls(line.removeprefix(LINE), *split_key(rest))
        return cls(None, *split_key(record))
