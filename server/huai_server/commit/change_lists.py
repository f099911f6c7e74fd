"""Lists of the paths that an update touched, read from files or from standard input.

What a line means is the engine's to say (`native/format/src/change_list/`).  A list is never an
error: what names no path of the module is counted, and the first lines of that kind are shown.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from huai_native._native import ChangeList
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import RelPath

SPELLINGS = ("auto", "lines", "nul", "itemized", "names")
"""How the paths of a list can be spelt."""
STANDARD_INPUT = "-"
_BLOCK = 1 << 20


class ListError(HuaiError):
    """A list that cannot be read."""

    exit_code = ExitCode.FILE_IO


class Refused(NamedTuple):
    """A line that names no path of the module."""

    line: bytes
    """The first bytes of it."""
    outside: bool
    """It leads out of the module; else no file can have that name."""


class ChangeLists(NamedTuple):
    """What lists name."""

    named: ChangeList
    paths: int
    refused: int
    first_refused: tuple[Refused, ...]
    is_cut: bool
    """Whether a log ends in the middle of a line."""
    names_links: bool = True
    """Whether a new name of a file comes with an old one."""


def read_lists(sources: Iterable[str], spelling: str, root: Path) -> ChangeLists:
    """Read all `sources`, `-` being standard input; `root` is the module's tree."""
    named = ChangeList(bytes(root))
    for source in sources:
        named.begin(spelling)
        try:
            if source == STANDARD_INPUT:
                _feed(named, sys.stdin.buffer)
            else:
                with Path(source).open("rb") as file:
                    _feed(named, file)
        except OSError as error:
            raise ListError(
                f"{source}: {error.strerror}",
                hint="name the log or the list of the update; nothing was committed",
            ) from error
        named.end()
    refused, lines, is_cut = named.remarks()
    first = tuple(Refused(*line) for line in lines)
    return ChangeLists(named, named.close(), refused, first, is_cut)


def list_of(root: Path, paths: Iterable[RelPath]) -> ChangeLists:
    """A list that names `paths`."""
    named = ChangeList(bytes(root))
    named.begin("nul")
    for path in paths:
        named.feed(path + b"\0")
    named.end()
    return ChangeLists(named, named.close(), 0, (), is_cut=False)


def _feed(named: ChangeList, source: BinaryIO) -> None:
    while block := source.read(_BLOCK):
        named.feed(block)
