"""The commit message: a line for people and trailers for programs (FORMAT.md, "Commits")."""

import re
from typing import NamedTuple

from huai_schema.descriptor import check_module
from huai_schema.errors import FormatError

MESSAGE_BYTES = 65_536
NUMBER_MAX = (1 << 63) - 1
_TRAILER = re.compile(r"Huai-([A-Za-z-]+): (0|[1-9][0-9]{0,18})")
_SUBJECT = re.compile(r"([^ \n]+) (?:0|[1-9][0-9]{0,18}): [^\n]+")
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
