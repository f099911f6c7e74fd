"""Lists of the paths that an update touched, read from files or from standard input.

The engine parses the lines (`native/export/src/change_list/`).  A list is never an error: lines
that name no path of the module are counted, and the first of them are shown.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from huai_native._native import ChangeList
from huai_schema.paths import RelPath
from huai_server.state.errors import StorageError

SPELLINGS = ("auto", "lines", "nul", "itemized", "names", "zfs-diff", "btrfs-dump")
_WITHOUT_LINKS = "zfs-diff"
"""The spelling of lists that name one path of each file."""
STANDARD_INPUT = "-"
_BLOCK = 1 << 20


class ChangeLists(NamedTuple):
    """The paths in lists, with the numbers of paths and of refused lines."""

    change_list: ChangeList
    paths: int
    refused: int
    first_refused: tuple[bytes, ...]
    """The first bytes of lines that name no path of the module."""
    is_cut: bool
    """True if a log ends in the middle of a line."""
    names_links: bool = True
    """True if each new name of a file comes with an old one."""


def read_lists(sources: Iterable[str], spelling: str, *roots: Path) -> ChangeLists:
    """Read all `sources`, paths or `-` for standard input, in one of `SPELLINGS`.

    Raises `StorageError` if one cannot be read; lines without a path of the module are counted.
    `roots` are the names of the tree's directory in the sources.  If one of them is relative,
    relative paths in the sources begin with it.
    """
    engine_list = ChangeList([bytes(root) for root in roots])
    for source in sources:
        engine_list.begin_source(spelling)
        try:
            if source == STANDARD_INPUT:
                _feed(engine_list, sys.stdin.buffer)
            else:
                with Path(source).open("rb") as file:
                    _feed(engine_list, file)
        except OSError as error:
            raise StorageError(
                f"{source}: {error.strerror}",
                hint="give the log or list of the update; nothing was committed",
            ) from error
        engine_list.end_source()
    refused, lines, is_cut = engine_list.remarks()
    first = tuple(line for line, _ in lines)
    names_links = spelling != _WITHOUT_LINKS
    return ChangeLists(engine_list, engine_list.close(), refused, first, is_cut, names_links)


def list_of(root: Path, paths: Iterable[RelPath]) -> ChangeLists:
    """Return `ChangeLists` of `paths`, which are relative to `root`; reads no file."""
    change_list = ChangeList([bytes(root)])
    change_list.begin_source("nul")
    for path in paths:
        change_list.feed(path + b"\0")
    change_list.end_source()
    return ChangeLists(change_list, change_list.close(), 0, (), is_cut=False)


def _feed(change_list: ChangeList, source: BinaryIO) -> None:
    while block := source.read(_BLOCK):
        change_list.feed(block)
