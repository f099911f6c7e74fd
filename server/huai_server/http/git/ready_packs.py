"""Packs that are there as files: what the newest commit changed, and all of what it holds.

The step from the commit before it was written with the commit (`store.steps`).  What leads there
from an older commit, and what a first fetch gets, is put together for the first who asks, from what
lies in the repository, into a file without a name; the others get the same.  Whatever else is asked
for is git's to answer.
"""

import asyncio
import logging
import os
import tempfile
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from huai_schema.errors import HuaiError
from huai_server.http.git.plain_fetch import PlainFetch
from huai_server.store.repository import Repository
from huai_server.store.steps import step_path

_COMMITS = 64
"""How many of the newest commits of a module somebody may have to get a file."""
_FILES = 256
"""At most of all modules: each is an open file."""

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
        self._made: OrderedDict[_Key, _Made] = OrderedDict()
        """What was not asked for longest comes first."""
        # One after the other: each keeps the disk busy.
        self._turn = asyncio.Semaphore(1)

    @asynccontextmanager
    async def find(
        self, repository: Path, head: str, fetch: PlainFetch
    ) -> AsyncIterator[ReadyPack | None]:
        """What answers `fetch`, as long as the block lasts; `head` is the newest commit."""
        handle, common = _open_step(repository, fetch)
        if handle is None and fetch.want == head:
            handle, common = await self._open_made(repository, head, fetch.haves)
        if handle is None:
            yield None
            return
        try:
            yield ReadyPack(handle, os.fstat(handle).st_size, common)
        finally:
            os.close(handle)

    async def _open_made(
        self, repository: Path, head: str, haves: Sequence[str]
    ) -> tuple[int | None, str | None]:
        """A handle, and the commit that the other side has to have."""
        self._forget_others(repository, head)
        known = (_Key(repository, have) for have in haves or (None,))
        key = next((each for each in known if each in self._made), None)
        if key is None:
            common = await asyncio.to_thread(_common, repository, haves) if haves else None
            if haves and common is None:
                return None, None
            key = _Key(repository, common)
        found = self._made.get(key)
        if found is None:
            making = asyncio.create_task(self._make(key, head))
            found = self._made[key] = _Made(head, making)
        self._made.move_to_end(key)
        # Whoever asked first may leave; the others wait for the same.
        await asyncio.shield(found.making)
        self._make_room()
        return found.open(), key.have

    async def _make(self, key: "_Key", head: str) -> int | None:
        async with self._turn:
            return await asyncio.to_thread(self._write, key, head)

    def _write(self, key: "_Key", head: str) -> int | None:
        """The handle of a file with what leads to the commit `head`; None: git has to make it."""
        try:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                left = self._limit

                def put(data: bytes) -> None:
                    nonlocal left
                    left -= file.write(data)
                    if left < 0:
                        raise OSError(f"more than {self._limit} bytes")

                store = Repository(key.repository)
                found = store.head()
                if found is None or found.commit != head:
                    return None
                since = (store.tree_of(key.have), b"") if key.have else None
                store.packs.send(*store.content(found), put, since=since)
                file.flush()
                return os.dup(file.fileno())
        except (HuaiError, OSError) as error:
            what = "late downstreams" if key.have else "first fetches"
            _log.warning("%s: git makes the packs of %s: %s", key.repository, what, error)
            return None

    def _forget_others(self, repository: Path, head: str) -> None:
        """Drop what leads to another commit of a repository."""
        for key, made in list(self._made.items()):
            if key.repository == repository and made.head != head:
                self._drop(key)

    def _make_room(self) -> None:
        """Drop what was not asked for longest, beyond the limits."""
        size = sum(made.size for made in self._made.values())
        for key, made in list(self._made.items())[:-1]:
            if size > self._limit or len(self._made) > _FILES:
                size -= made.size
                self._drop(key)

    def _drop(self, key: "_Key") -> None:
        self._made.pop(key).drop()


class _Key(NamedTuple):
    """Whom a file is for."""

    repository: Path
    have: str | None
    """The commit (hex id) that the other side has, if it has one."""


class _Made:
    """A pack that was made for whoever asked first, as a file."""

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


def _common(repository: Path, haves: Sequence[str]) -> str | None:
    """The newest commit (hex id) among `haves`, if it is not too old."""
    with suppress(HuaiError):
        newest = islice(Repository(repository).history(), _COMMITS)
        return next((each.commit for each in newest if each.commit in haves), None)
    return None
