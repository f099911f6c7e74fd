"""Reading of the files that filter rules name.

Rule to keep: nothing else in this package reads a disk.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from huai_client.config.modes import Modes
from huai_client.filters.grammar import FilterError
from huai_client.filters.parser import Parser, ReadFile
from huai_client.filters.rules import Rules
from huai_schema.paths import show


def read_from(folder: Path) -> ReadFile:
    """Return a function that reads merged files below `folder`; it raises `FilterError`."""

    def read(name: bytes) -> bytes:
        """Read a merged file; raises `FilterError` for "-" or an unreadable one."""
        if name == b"-":
            raise FilterError(
                "filter rules cannot be read from standard input ('-')",
                hint="write the rules to a file and name it",
            )
        path = folder / os.fsdecode(name)
        try:
            return path.read_bytes()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise FilterError(
                f"{show(os.fsencode(path))}: {reason}",
                hint="a filter names this file: make it readable, or correct the name",
            ) from error

    return read


def load_rules(
    lines: Iterable[str], folder: Path, *, place: str = "filter rule", modes: Modes = Modes.EXACT
) -> Rules:
    """Return the filter of a module; relative names of merged files start at `folder`.

    As with rsync's --delete-excluded, the rules decide which paths are mirrored and protect none.
    Raises `FilterError` for a malformed rule, one that names the receiver's side, and a file that
    cannot be read.
    """
    parser = Parser(read_from(folder), delete_excluded=True)
    parser.filter_all(map(os.fsencode, lines), place)
    for rule in parser.rules:
        if rule.receiver:
            raise FilterError(
                f"{rule.place}: '{show(rule.text)}': a filter decides which paths are mirrored and "
                "cannot protect any from deletion",
                hint="use + and -; name the paths that huai must not touch in protect",
            )
    return Rules(parser.rules, modes)
