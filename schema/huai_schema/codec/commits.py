"""A commit: its head, a line for people and trailers for programs (FORMAT.md, "Commits").

Pure: takes bytes apart, reads nothing that they name.
"""

import re
from typing import NamedTuple

from huai_schema.codec.descriptor import check_module
from huai_schema.errors import FormatError
from huai_schema.limits import TOTAL_ENTRIES

COMMIT_BYTES = 131_072
MESSAGE_BYTES = 65_536
COMMIT_TIME_MAX = 1 << 37
"""Seconds since the epoch: the year 6325.  Every clock library can tell that."""
SERIAL_STEP = 1 << 32
"""From the serial that was accepted to the next one: no honest upstream commits so often."""
NUMBER_MAX = (1 << 63) - 1
_TRAILER = re.compile(r"Huai-([A-Za-z-]+): (0|[1-9][0-9]{0,18})")
_SUBJECT = re.compile(r"([^ \n]+) (?:0|[1-9][0-9]{0,18}): [^\n]+")
_OBJECT = re.compile(
    rb"tree ([0-9a-f]{40})\n((?:parent [0-9a-f]{40}\n)*)"
    rb"author [^\n]*\ncommitter [^\n]*> ([0-9]{1,12}) [+-][0-9]{4}\n"
    rb"(?:[^\n]+\n)*\n"
)
"""A commit as git writes it; further headers, such as a signature, may follow its date."""
_KNOWN = (
    "Serial",
    "Files",
    "Directories",
    "Symlinks",
    "Bytes",
    "Skipped",
    "Added",
    "Removed",
    "Changed",
    "Moved",
)


class Totals(NamedTuple):
    """What one snapshot holds."""

    files: int = 0
    directories: int = 0
    symlinks: int = 0
    bytes: int = 0
    """Sum of the sizes of all regular files; a hardlink group counts once for each name."""

    @property
    def entries(self) -> int:
        """Everything, the module's own directory included."""
        return self.files + self.directories + self.symlinks


class Counts(NamedTuple):
    """How one snapshot differs from the one before it."""

    added: int = 0
    removed: int = 0
    changed: int = 0
    moved: int = 0
    """Entries that only came along when a directory above them was renamed."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.added + self.removed + self.changed + self.moved


class CommitInfo(NamedTuple):
    """What a commit message says."""

    module: str
    serial: int
    """Grows by one with every commit of a module, and never goes back."""
    totals: Totals
    counts: Counts
    skipped: int = 0
    """Devices, sockets, fifos and over-long paths of the tree, which no snapshot holds."""

    def encode(self) -> str:
        """The whole message."""
        counts = self.counts
        subject = (
            f"{self.module} {self.serial}: +{counts.added} -{counts.removed} ~{counts.changed}"
        )
        numbers = (self.serial, *self.totals, self.skipped, *counts)
        trailers = (f"Huai-{key}: {value}" for key, value in zip(_KNOWN, numbers, strict=True))
        return "\n".join((subject, "", *trailers)) + "\n"

    @classmethod
    def decode(cls, message: str) -> "CommitInfo":
        """Read a message; unknown trailers are ignored, anything else wrong is a `FormatError`."""
        if len(message) > MESSAGE_BYTES:
            raise FormatError("the commit message is too long", "commit")
        lines = message.split("\n")
        subject = _SUBJECT.fullmatch(lines[0])
        if subject is None or lines[1:2] != [""] or lines[-1]:
            raise FormatError("the message is not a subject and trailers", "commit")
        try:
            module = check_module(subject[1])
        except FormatError as error:
            raise error.within("commit") from None
        serial, files, directories, symlinks, size, skipped, *counts = _numbers(lines[2:])
        totals = Totals(files, directories, symlinks, size)
        if totals.entries > TOTAL_ENTRIES:
            raise FormatError(f"more than {TOTAL_ENTRIES} entries are announced", "commit")
        info = cls(module, serial, totals, Counts(*counts), skipped)
        if lines[0] != info.encode().partition("\n")[0]:
            raise FormatError("the subject says something else than the trailers", "commit")
        return info


def _numbers(trailers: list[str]) -> list[int]:
    """The values of the known trailers, each of which stands there once, in their order."""
    found: list[tuple[str, int]] = []
    for line in trailers:
        key = line.partition(":")[0].removeprefix("Huai-")
        if key == line.partition(":")[0] or key not in _KNOWN:
            continue
        trailer = _TRAILER.fullmatch(line)
        if trailer is None or int(trailer[2]) > NUMBER_MAX:
            raise FormatError(f"the trailer Huai-{key} is not a number in range", "commit")
        found.append((key, int(trailer[2])))
    keys = [key for key, _ in found]
    missing = [key for key in _KNOWN if key not in keys]
    if missing:
        raise FormatError(f"the trailer Huai-{missing[0]} is missing", "commit")
    if keys != list(_KNOWN):
        raise FormatError("trailers repeated or out of order", "commit")
    return [value for _, value in found]


class CommitObject(NamedTuple):
    """One git commit."""

    tree: bytes
    """The id of its tree."""
    parents: tuple[str, ...]
    """Hex ids."""
    time: int
    """When it was committed, seconds since the epoch."""
    message: bytes

    def info(self) -> CommitInfo:
        """What the message says."""
        try:
            return CommitInfo.decode(self.message.decode())
        except UnicodeDecodeError:
            raise FormatError("the message is not UTF-8", "commit") from None


def decode_commit(data: bytes) -> CommitObject:
    """Take the bytes of a commit apart; `FormatError` for one that git would not write."""
    if len(data) > COMMIT_BYTES:
        raise FormatError(f"a commit of more than {COMMIT_BYTES} bytes", "commit")
    found = _OBJECT.match(data)
    if found is None:
        raise FormatError("not a commit as git writes it", "commit")
    time = int(found[3])
    if not 0 < time <= COMMIT_TIME_MAX:
        raise FormatError(f"a date out of range: {time} s", "commit")
    tree = bytes.fromhex(found[1].decode())
    parents = tuple(found[2].decode().replace("parent ", "").split())
    return CommitObject(tree, parents, time, data[found.end() :])
