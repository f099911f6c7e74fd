"""Cuts the files to fetch into batches, each one run of rsync.

Pure.  Keeps the order: the planner has put what belongs together (the files of one
directory) side by side.
"""

from collections.abc import Iterable, Iterator

from huai_schema.entries import File

MAX_FILES = 1000
MAX_BYTES = 1 << 30


def batches(
    files: Iterable[File], *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES
) -> Iterator[list[File]]:
    """Consecutive batches within both bounds; a file above `max_bytes` gets one of its own."""
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
