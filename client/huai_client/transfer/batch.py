"""Batches: the files of one run of rsync each.

Pure.  Keeps the order of the plan, in which the files of a directory follow each other.  A batch
with enough files ends at the end of a directory: one that arrived in a single run is published by
one rename, and each file of another run costs one more.  A directory of larger files is shared
among the streams instead.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from huai_client.diff.files import paths, sizes
from huai_client.staging import Arrival
from huai_schema.entries import File
from huai_schema.paths import RelPath, parent

MAX_FILES = 1_000_000
ENOUGH_FILES = 20_000
"""A run of rsync ends with a wait of a tenth of a second, the time of 2,000 small files."""
MAX_FILES_COMPARED = 1000
"""For an rsync that compares each arriving name with each requested one."""
MAX_BYTES = 1 << 30
SMALL = 16 << 10
"""Bytes: the name of a smaller file costs more than its content, and so does a comparison with
its older version, for which rsync needs a hundred system calls."""


@dataclass(slots=True)
class Batch:
    """The files of one run of rsync that have not arrived yet, and their verdicts."""

    open: Sequence[File]
    verdicts: list[tuple[File, Arrival]] = field(default_factory=list)
    by_name: bool = False
    """True if no directory may be requested as a whole, as not all of its files arrived so."""
    compares: bool = False
    """True if rsync compares the files with older versions in the tree."""

    def halves(self) -> "list[Batch]":
        """Return the open files as two batches."""
        middle = len(self.open) // 2
        parts = self.open[:middle], self.open[middle:]
        return [replace(self, open=part, verdicts=[]) for part in parts]


def batches(
    files: Sequence[File],
    *,
    enough: int = ENOUGH_FILES,
    max_files: int = MAX_FILES,
    max_bytes: int = MAX_BYTES,
) -> Iterator[Sequence[File]]:
    """Cut `files` into batches within both limits; a file above `max_bytes` gets its own.

    With `enough` files, a batch continues only to the end of a directory of small files.
    """
    begin = total = 0
    last = RelPath(b"")
    for position, (path, size) in enumerate(zip(paths(files), sizes(files), strict=True)):
        count = position - begin
        full = count >= max_files or total + size > max_bytes
        if not full and count >= enough:
            full = total > count * SMALL or parent(path) != parent(last)
        if count and full:
            yield files[begin:position]
            begin, total = position, 0
        last = path
        total += size
    if begin < len(files):
        yield files[begin:]
