"""Digests of files: of one, read block by block, and of many, in a few threads.

Files are read, not mapped: with a memory map, a disk error would be a signal that ends the process.
Callers open the files, since only the tree opens paths safely.

Rule to keep: the number of open files is bounded, and each handle is closed in any case.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, NamedTuple, Self, TypeVar

from huai_client.tree.priority import lower_priority

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
_WORKERS = min(4, os.cpu_count() or 1)
_WINDOW = 4 * _WORKERS
_UNKNOWN = 1 << 20
_BLOCK = 4 << 20
_THREADS_FROM = 64 << 20


def digest_of(
    handle: int, size: int = _UNKNOWN, on_block: Callable[[memoryview, int], None] | None = None
) -> bytes:
    """The BLAKE3-256 hash of the file `handle`.

    `size`: its approximate size in bytes; several threads hash a large file.  `on_block` is called
    with each block and its offset; an exception of it ends the reading.
    """
    from blake3 import blake3

    hasher = blake3(max_threads=blake3.AUTO if size >= _THREADS_FROM else 1)
    buffer = memoryview(bytearray(max(1, min(_BLOCK, size))))
    place = 0
    while count := os.preadv(handle, [buffer], place):
        block = buffer[:count]
        if on_block is not None:
            on_block(block, place)
        hasher.update(block)
        place += count
    return hasher.digest()


class Hashed(NamedTuple, Generic[T]):
    """The result for one file."""

    tag: T
    digest: bytes | None
    """None: the file could not be read; see `reason`."""
    reason: str = ""


class Hashing(Generic[T]):
    """A pool of threads: `add` takes files, and `add` and `rest` yield results, in order."""

    def __init__(self) -> None:
        """Start the threads, with low priority."""
        self._pool = ThreadPoolExecutor(_WORKERS, "huai-hash", initializer=lower_priority)
        self._waiting: deque[tuple[T, int, Future[bytes]]] = deque()

    def __enter__(self) -> Self:
        """The pool itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel the files that were not begun, wait for the others, close all handles."""
        for waiting in self._waiting:
            waiting[2].cancel()
        self._pool.shutdown()
        while self._waiting:
            os.close(self._waiting.popleft()[1])

    def add(self, tag: T, handle: int) -> Iterator[Hashed[T]]:
        """Queue `handle`, which is closed here; while too many wait, yields results."""
        self._waiting.append((tag, handle, self._pool.submit(digest_of, handle)))
        while len(self._waiting) >= _WINDOW:
            yield self._next()

    def rest(self) -> Iterator[Hashed[T]]:
        """The results of all files that are left."""
        while self._waiting:
            yield self._next()

    def _next(self) -> Hashed[T]:
        tag, handle, job = self._waiting.popleft()
        try:
            return Hashed(tag, job.result())
        except OSError as error:
            return Hashed(tag, None, error.strerror or str(error))
        finally:
            os.close(handle)
