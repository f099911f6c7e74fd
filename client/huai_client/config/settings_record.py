"""The record of the settings with which a tree was made, in its parts.  Pure.

A record is a line for keys of client.toml (`tree_settings.RECORDED`), then `filters.Rules.key`: a
line for the modes, and the filter.
"""

from msgspec import Struct

from huai_client.config.modes import Modes, split_key

LINE = "tree "
"""The beginning of the keys' line, which no rule of rsync has."""


class TreeSettings(Struct, frozen=True):
    """A record in its parts."""

    keys: str | None
    """The line of the keys; None for a version that did not record it."""
    modes: Modes
    rules: str
    """The filter, a line for each rule."""

    @classmethod
    def parse(cls, record: str) -> "TreeSettings":
        """Parse a record; raises `UnknownModesError` for a policy of another version."""
        line, _, rest = record.partition("\n")
        if line.startswith(LINE):
            return cls(line.removeprefix(LINE), *split_key(rest))
        return cls(None, *split_key(record))
