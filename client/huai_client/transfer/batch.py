"""Batches: files that one run of rsync is asked for.

Pure.  Keeps the order of the plan, in which the files of a directory follow each other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from huai_client.transfer.staging import Arrival
from huai_schema.entries import File

MAX_FILES = 5000
MAX_FILES_COMPARED = 1000
"""Where rsync compares each name that comes with each that was asked for."""
MAX_BYTES = 1 << 30


@dataclass(slots=True)
class Batch:
    """The files of one run of rsync that have not arrived yet, and the verdicts on them."""

    open: list[File]
    verdicts: list[tuple[File, Arrival]] = field(default_factory=list)

    def halves(self) -> "list[Batch]":
        """The open files as two batches."""
        middle = len(self.open) // 2
        return [Batch(self.open[:middle]), Batch(self.open[middle:])]


def batches(
    files: Iterable[File], *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES
) -> Iterator[list[File]]:
    """Cut `files` into batches within both bounds; a file above `max_bytes` gets its own."""
    batch: list[File] = []
    size = 0
    for file in files:
        if batch and (len(batch) >= max_files or size + file.size > max_bytes):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    if batch:
        yield batch
