"""Reads the files that filter rules name.

Rule to keep: nothing else in this package reads a disk.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from huai_client.filters.grammar import FilterError
from huai_client.filters.parser import Parser, ReadFile
from huai_client.filters.rules import Rules
from huai_client.modes import Modes
from huai_schema.paths import show


def read_from(folder: Path) -> ReadFile:
    """A reader of files whose names count from `folder`."""

    def read(name: bytes) -> bytes:
        if name == b"-":
            raise FilterError("rules cannot be read from standard input", hint="name a file")
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
    lines: Iterable[str],
    folder: Path,
    *,
    place: str = "filter rule",
    modes: Modes = Modes.EXACT,
) -> Rules:
    """The filter of a module; files that it merges are looked for from `folder`.

    As with rsync's --delete-excluded, its rules say what is mirrored and protect nothing:
    `FilterError` for one that would.
    """
    parser = Parser(read_from(folder), delete_excluded=True)
    parser.list(map(os.fsencode, lines), place)
    for rule in parser.rules:
        if rule.receiver:
            raise FilterError(
                f"{rule.place}: '{show(rule.text)}': a filter says what is mirrored, not what is "
                "protected from deletion",
                hint="use + and -; what must never be touched here belongs into protect",
            )
    return Rules(parser.rules, modes)
