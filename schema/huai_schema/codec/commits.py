"""A commit: its headers, a line for people and trailers for programs (FORMAT.md, "Commits").

Pure: parses bytes, and reads no object to which they refer.
"""

import re
from typing import NamedTuple

from huai_schema.codec.module_name import check_module
from huai_schema.errors import FormatError
from huai_schema.limits import TOTAL_ENTRIES

COMMIT_BYTES = 131_072
MESSAGE_BYTES = 65_536
COMMIT_TIME_MAX = 1 << 37
"""Seconds since the epoch: the year 6325, which every calendar library can represent."""
SERIAL_STEP = 1 << 32
"""The largest step between accepted serials: no honest upstream commits so often."""
NUMBER_MAX = (1 << 63) - 1
_AUTHOR = "huai <huai@localhost>"
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
_NEW_BYTES = "New-Bytes"
"""The trailer that older commits lack, after the known ones."""


class Totals(NamedTuple):
    """The totals of one snapshot."""

    files: int = 0
    directories: int = 0
    symlinks: int = 0
    bytes: int = 0
    """The sum of the sizes of all regular files; a hardlink group counts once for each name."""

    @property
    def entries(self) -> int:
        """The number of all entries, with the module's own directory."""
        return self.files + self.directories + self.symlinks


class Counts(NamedTuple):
    """The number of differences between one snapshot and the one before it."""

    added: int = 0
    removed: int = 0
    changed: int = 0
    moved: int = 0
    """Entries that moved only because a directory above them was renamed."""
    new_bytes: int | None = None
    """The sizes of the files that are new or have other content; None if unknown."""

    @property
    def total(self) -> int:
        """The number of differences of all kinds."""
        return self.added + self.removed + self.changed + self.moved


class CommitInfo(NamedTuple):
    """The content of a commit message."""

    module: str
    serial: int
    """A number that grows by one with every commit of a module, and never decreases."""
    totals: Totals
    counts: Counts
    skipped: int = 0
    """Devices, sockets, fifos and over-long paths of the tree, which no snapshot holds."""

    def encode(self) -> str:
        """Return the commit message: a subject, and a trailer for each number."""
        counts = self.counts
        subject = (
            f"{self.module} {self.serial}: +{counts.added} -{counts.removed} ~{counts.changed}"
        )
        keys = _KNOWN if counts.new_bytes is None else (*_KNOWN, _NEW_BYTES)
        numbers = (self.serial, *self.totals, self.skipped, *counts)
        trailers = (f"Huai-{key}: {value}" for key, value in zip(keys, numbers, strict=False))
        return "\n".join((subject, "", *trailers)) + "\n"

    @classmethod
    def decode(cls, message: str) -> "CommitInfo":
        """Parse a message; unknown trailers are ignored, any other fault raises `FormatError`."""
        if len(message) > MESSAGE_BYTES:
            raise FormatError("the commit message is too long", "commit")
        lines = message.split("\n")
        subject = _SUBJECT.fullmatch(lines[0])
        if subject is None or lines[1:2] != [""] or lines[-1]:
            raise FormatError("the message must be a subject and trailers", "commit")
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
            raise FormatError("the subject contradicts the trailers", "commit")
        return info


def _numbers(trailers: list[str]) -> list[int]:
    """Parse trailers to the values of `_KNOWN`, in its order, and that of `_NEW_BYTES` if any.

    Skips unknown trailers and lines.  Raises `FormatError` unless each known trailer is there once,
    in order, with a number in range.
    """
    values: list[tuple[str, int]] = []
    for line in trailers:
        key = line.partition(":")[0].removeprefix("Huai-")
        if key == line.partition(":")[0] or key not in {*_KNOWN, _NEW_BYTES}:
            continue
        trailer = _TRAILER.fullmatch(line)
        if trailer is None or int(trailer[2]) > NUMBER_MAX:
            raise FormatError(f"the trailer Huai-{key} is not a number in range", "commit")
        values.append((key, int(trailer[2])))
    keys = [key for key, _ in values]
    missing = [key for key in _KNOWN if key not in keys]
    if missing:
        raise FormatError(f"the trailer Huai-{missing[0]} is missing", "commit")
    if keys not in ([*_KNOWN], [*_KNOWN, _NEW_BYTES]):
        raise FormatError("trailers are repeated or out of order", "commit")
    return [value for _, value in values]


class CommitObject(NamedTuple):
    """A parsed git commit."""

    tree: bytes
    """The id of the commit's tree."""
    parents: tuple[str, ...]
    """Hex ids."""
    time: int
    """The committer's time, seconds since the epoch."""
    message: bytes

    def info(self) -> CommitInfo:
        """Parse the message; raises `FormatError` if it is malformed."""
        try:
            return CommitInfo.decode(self.message.decode())
        except UnicodeDecodeError:
            raise FormatError("the message is not UTF-8", "commit") from None


def encode_commit(tree: bytes, parent: str | None, time: int, message: str) -> bytes:
    """Return the unsigned commit object, by huai, of the git tree with the id `tree`.

    `parent` is a hex id, None for the first commit of a history; `time` is in seconds since the
    epoch.
    """
    lines = [f"tree {tree.hex()}"]
    if parent is not None:
        lines.append(f"parent {parent}")
    lines += (f"{role} {_AUTHOR} {time} +0000" for role in ("author", "committer"))
    return "\n".join((*lines, "", message)).encode()


def decode_commit(data: bytes) -> CommitObject:
    """Parse a commit object; raises `FormatError` if it is too large, or not as git writes it.

    Raises it also for a date out of range.  The message is not parsed (`CommitObject.info`).
    """
    if len(data) > COMMIT_BYTES:
        raise FormatError(f"a commit of more than {COMMIT_BYTES} bytes", "commit")
    match = _OBJECT.match(data)
    if match is None:
        raise FormatError("not a commit as git writes it", "commit")
    time = int(match[3])
    if not 0 < time <= COMMIT_TIME_MAX:
        raise FormatError(f"the date is out of range: {time} s", "commit")
    tree = bytes.fromhex(match[1].decode())
    parents = tuple(match[2].decode().replace("parent ", "").split())
    return CommitObject(tree, parents, time, data[match.end() :])
