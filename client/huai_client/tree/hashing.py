"""Digests: of one file, read block by block, and of many, computed in a few threads.

A file is read through its handle: a memory map would turn a disk error into a signal that ends the
whole process.

Rule: a bounded number of files is open at a time, and every handle is closed whatever
happens.  Opening is the caller's: only the tree opens paths safely.
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
    """BLAKE3-256 of all that the file `handle` holds.

    `size`: about how many bytes that is; several threads hash a large file.  `on_block` is given
    each block and its place in the file; what it raises ends the reading.
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
    """One file that was read."""

    tag: T
    digest: bytes | None
    """None: it could not be read; see `reason`."""
    reason: str = ""


class Hashing(Generic[T]):
    """Files go in with `add`, and come out hashed, in the same order."""

    def __init__(self) -> None:
        """Start the threads, which give way to everybody else: all of this has time."""
        self._pool = ThreadPoolExecutor(_WORKERS, "huai-hash", initializer=lower_priority)
        self._waiting: deque[tuple[T, int, Future[bytes]]] = deque()

    def __enter__(self) -> Self:
        """The pool itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Drop what has not begun, wait for what has, close all."""
        for waiting in self._waiting:
            waiting[2].cancel()
        self._pool.shutdown()
        while self._waiting:
            os.close(self._waiting.popleft()[1])

    def add(self, tag: T, handle: int) -> Iterator[Hashed[T]]:
        """Take over `handle`; yields what is done when the window is full."""
        self._waiting.append((tag, handle, self._pool.submit(digest_of, handle)))
        while len(self._waiting) >= _WINDOW:
            yield self._next()

    def rest(self) -> Iterator[Hashed[T]]:
        """Everything that is still under way."""
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
