"""Packs that are there as files: the step from a commit to the next, and all of the newest one.

The steps were written with their commits (`store.steps`).  What a first fetch gets is put together
for the first who asks, from what lies in the repository, into a file without a name.  Whatever else
is asked for is git's to answer.
"""

import asyncio
import logging
import os
import tempfile
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from huai_schema.errors import HuaiError
from huai_server.http.git.plain_fetch import PlainFetch
from huai_server.store.repository import Repository
from huai_server.store.steps import step_path

_log = logging.getLogger(__name__)


class ReadyPack(NamedTuple):
    """A pack that is sent as it lies there."""

    handle: int
    """Of its file, which is read by place."""
    size: int
    common: str | None
    """The commit (hex id) that the other side has to have."""


class ReadyPacks:
    """All of one server."""

    def __init__(self, folder: Path, limit: int) -> None:
        """At most `limit` bytes in `folder`."""
        self._folder = folder
        self._limit = limit
        self._clones: OrderedDict[Path, _Clone] = OrderedDict()
        """One of each repository; what was not asked for longest comes first."""
        # One after the other: each keeps the disk busy.
        self._turn = asyncio.Semaphore(1)

    @asynccontextmanager
    async def find(
        self, repository: Path, head: str, fetch: PlainFetch
    ) -> AsyncIterator[ReadyPack | None]:
        """What answers `fetch`, as long as the block lasts; `head` is the newest commit."""
        common = None
        if fetch.haves:
            handle, common = _open_step(repository, fetch)
        elif fetch.want == head:
            handle = await self._open_clone(repository, head)
        else:
            handle = None
        if handle is None:
            yield None
            return
        try:
            yield ReadyPack(handle, os.fstat(handle).st_size, common)
        finally:
            os.close(handle)

    async def _open_clone(self, repository: Path, head: str) -> int | None:
        clone = self._clones.get(repository)
        if clone is None or clone.head != head:
            if clone is not None:
                clone.drop()
            making = asyncio.create_task(self._make(repository, head))
            clone = self._clones[repository] = _Clone(head, making)
        self._clones.move_to_end(repository)
        # Whoever asked first may leave; the others wait for the same.
        await asyncio.shield(clone.making)
        self._make_room()
        return clone.open()

    async def _make(self, repository: Path, head: str) -> int | None:
        async with self._turn:
            return await asyncio.to_thread(self._write, repository, head)

    def _write(self, repository: Path, head: str) -> int | None:
        """The handle of a file with all of the commit; None: git has to make it."""
        try:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                left = self._limit

                def put(data: bytes) -> None:
                    nonlocal left
                    left -= file.write(data)
                    if left < 0:
                        raise OSError(f"more than {self._limit} bytes")

                store = Repository(repository)
                found = store.head()
                if found is None or found.commit != head:
                    return None
                store.packs.send(*store.content(found), put)
                file.flush()
                return os.dup(file.fileno())
        except (HuaiError, OSError) as error:
            _log.warning("%s: git makes the packs of first fetches: %s", repository, error)
            return None

    def _make_room(self) -> None:
        """Drop what was not asked for longest, beyond the limit."""
        size = sum(clone.size for clone in self._clones.values())
        for repository, clone in list(self._clones.items())[:-1]:
            if size > self._limit:
                size -= clone.size
                clone.drop()
                del self._clones[repository]


class _Clone:
    """All of one commit, as a file."""

    def __init__(self, head: str, making: "asyncio.Task[int | None]") -> None:
        self.head = head
        self.making = making
        self._dropped = False

    @property
    def size(self) -> int:
        """Bytes, as far as they are there."""
        handle = self._handle()
        return 0 if handle is None else os.fstat(handle).st_size

    def open(self) -> int | None:
        """A handle of the caller's own, if there is a file."""
        handle = self._handle()
        return None if handle is None else os.dup(handle)

    def drop(self) -> None:
        """Close the file; those who have opened it read on."""
        self.making.add_done_callback(_close)
        self._dropped = True

    def _handle(self) -> int | None:
        done = self.making.done() and not self.making.cancelled() and not self._dropped
        return self.making.result() if done else None


def _close(made: "asyncio.Task[int | None]") -> None:
    if not made.cancelled() and (handle := made.result()) is not None:
        os.close(handle)


def _open_step(repository: Path, fetch: PlainFetch) -> tuple[int | None, str | None]:
    for have in fetch.haves:
        try:
            path = step_path(repository, have, fetch.want)
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC), have
        except OSError:  # most likely it is not the next commit
            continue
    return None, None
