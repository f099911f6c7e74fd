"""Digests of files, of one or of many, in a few threads.

Callers open the files, because only the tree opens paths safely.

Rule to keep: the number of open files is bounded, and each handle is closed in any case.
"""

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, NamedTuple, Self, TypeVar

from huai_native import _native
from huai_program.priority import lower_priority

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
WORKERS = min(4, os.cpu_count() or 1)
"""The number of threads that read files."""
_WINDOW = 4 * WORKERS


def digest_of(handle: int) -> bytes:
    """Return the BLAKE3-256 hash of the file `handle`, by several threads; raises `OSError`."""
    return _native.hash_file(handle, WORKERS)


class Hashed(NamedTuple, Generic[T]):
    """The result for one file."""

    tag: T
    digest: bytes | None
    """The digest; None if the file could not be read."""
    reason: str = ""


class Hashing(Generic[T]):
    """A pool of threads: `add` takes files, and `add` and `rest` yield results, in order."""

    def __init__(self) -> None:
        """Start the threads, with low priority."""
        self._pool = ThreadPoolExecutor(WORKERS, "huai-hash", initializer=lower_priority)
        self._waiting: deque[tuple[T, int, Future[bytes]]] = deque()
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel all files, also those that are read, and close all handles."""
        self._ended = True
        for waiting in self._waiting:
            waiting[2].cancel()
        self._pool.shutdown()
        while self._waiting:
            os.close(self._waiting.popleft()[1])

    def add(self, tag: T, handle: int) -> Iterator[Hashed[T]]:
        """Queue `handle`, which is closed later; yields results while too many wait."""
        self._waiting.append((tag, handle, self._pool.submit(self._digest, handle)))
        while len(self._waiting) >= _WINDOW:
            yield self._next()

    def rest(self) -> Iterator[Hashed[T]]:
        """Yield the results of all remaining files."""
        while self._waiting:
            yield self._next()

    def _digest(self, handle: int) -> bytes:
        """Return the digest of a file; raises `CancelledError` after the end."""
        return _native.hash_file(handle, WORKERS, self._go_on)

    def _go_on(self) -> None:
        if self._ended:
            raise CancelledError

    def _next(self) -> Hashed[T]:
        """Wait for the next digest, and close its file; an error becomes its reason."""
        tag, handle, job = self._waiting.popleft()
        try:
            return Hashed(tag, job.result())
        except OSError as error:
            return Hashed(tag, None, error.strerror or str(error))
        finally:
            os.close(handle)
