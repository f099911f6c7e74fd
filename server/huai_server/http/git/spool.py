"""Answers between git and a slower reader: the first bytes in memory, the rest in a file.

So git ends, and gives its slot back, however slowly the client reads.  The files have no name, and
a limit for all of them together; beyond it git waits for the reader, as at a pipe.
Rule: a file is closed only after the thread that works on it has ended.
"""

import asyncio
import logging
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO, cast

from huai_server.http.asgi.errors import ClientGoneError
from huai_server.http.asgi.threads import in_thread

MEMORY_BYTES = 256 << 10
"""Of each answer in memory."""
_READ_BYTES = 128 << 10

_log = logging.getLogger(__name__)


class Spool:
    """All files of one server."""

    def __init__(self, folder: Path, limit: int) -> None:
        """At most `limit` bytes in `folder`; if it cannot be written, the log says so, once."""
        self._folder = folder
        self._limit = limit
        self._complained = False
        self.size = 0

    @asynccontextmanager
    async def answer(self) -> AsyncIterator["Spooled"]:
        """An empty answer; its bytes are given back at the end."""
        spooled = Spooled(self)
        try:
            yield spooled
        finally:
            spooled.drop()

    def take(self, size: int) -> bool:
        """Take `size` bytes of the limit; False if so many are not left."""
        if self.size + size > self._limit:
            return False
        self.size += size
        return True

    def give_back(self, size: int) -> None:
        """Return `size` bytes to the limit."""
        self.size -= size

    def open(self) -> BinaryIO | None:
        """A file without a name; None if there can be none."""
        try:
            return cast("BinaryIO", tempfile.TemporaryFile(buffering=0, dir=self._folder))
        except OSError as error:
            self.complain(error)
            return None

    def complain(self, error: OSError) -> None:
        """Log the error, once."""
        if not self._complained:
            self._complained = True
            _log.warning(
                "%s: %s: git has to wait for slow clients; "
                "name another folder as [listen] spool_folder",
                self._folder,
                error.strerror,
            )


class Spooled:
    """One answer: one task puts, another gets.

    `size` counts the bytes that were put; `ended` says that no more follow.
    """

    def __init__(self, spool: Spool) -> None:
        """Empty; made by `Spool.answer`."""
        self._spool = spool
        self._file: BinaryIO | None = None
        self._filed = self._taken = 0
        """Bytes in the file, and how many of those were got."""
        self._memory = bytearray()
        """The bytes after those in the file."""
        self._changed = asyncio.Condition()
        self.size = 0
        self.ended = False

    async def put(self, data: bytes) -> None:
        """Add to the end; waits for the reader only if there is no room."""
        async with self._changed:
            self._memory += data
            self.size += len(data)
            self._changed.notify_all()
            if len(self._memory) > MEMORY_BYTES and not await self._move_to_file():
                await self._changed.wait_for(lambda: len(self._memory) <= MEMORY_BYTES)

    async def end(self) -> None:
        """Say that no more follows."""
        async with self._changed:
            self.ended = True
            self._changed.notify_all()

    async def grown(self, size: int) -> None:
        """Wait until it has ended, or more than `size` bytes were put."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.ended or self.size > size)

    async def get(self) -> bytes:
        """The next piece; empty at the end."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._taken < self._filed or bool(self._memory) or self.ended
            )
            if self._file is not None and self._taken < self._filed:
                return await self._read(self._file)
            data = bytes(self._memory[:_READ_BYTES])
            del self._memory[:_READ_BYTES]
            self._changed.notify_all()
            return data

    def drop(self) -> None:
        """Free memory and file; call it when no task puts or gets any more."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._spool.give_back(self._filed)
            self._filed = 0

    async def _read(self, file: BinaryIO) -> bytes:
        size = min(_READ_BYTES, self._filed - self._taken)
        data = await in_thread(lambda: os.pread(file.fileno(), size, self._taken))
        if not data:
            raise ClientGoneError("a spooled answer was interrupted")
        self._taken += len(data)
        return data

    async def _move_to_file(self) -> bool:
        """Empty the memory into the file; False if there is no room."""
        if self._file is None:
            self._file = self._spool.open()
        file, data = self._file, bytes(self._memory)
        if file is not None and self._taken == self._filed:
            self._spool.give_back(self._filed)
            self._filed = self._taken = 0  # all of the file was read: write from its start again
        if file is None or not self._spool.take(len(data)):
            return False
        at = self._filed
        try:
            await in_thread(lambda: _write(file.fileno(), data, at))
        except OSError as error:  # a full disk: as without room
            self._spool.complain(error)
            self._spool.give_back(len(data))
            return False
        except BaseException:
            self._spool.give_back(len(data))
            raise
        self._filed += len(data)
        self._memory.clear()
        return True


def _write(handle: int, data: bytes, at: int) -> None:
    done = 0
    while done < len(data):
        done += os.pwrite(handle, data[done:], at + done)
