"""The trash: keeping files in batches, and purging them.

Rule to keep: only folders with the name of a batch are removed, the oldest first.  A purge costs
what it deletes.
"""

import os
import re
import time
from calendar import timegm
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from huai_client.run.ages import overdue
from huai_client.tree import STAGING_NAME, handles
from huai_client.tree.destination import NoSpaceError, bytes_on_disk
from huai_client.tree.errors import at
from huai_native import _native
from huai_schema.paths import RelPath, basename, join, parent

_NAME = re.compile(rb"([0-9]{1,19})-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z(?:-([0-9]{1,9}))?")
T = TypeVar("T")
TRASH_NAME = b"huai-trash"
TRASH = RelPath(STAGING_NAME + b"/" + TRASH_NAME)


class TrashBatch(NamedTuple):
    """The files that one run kept: a folder of the trash."""

    since: int
    """When the run kept its first file, seconds since the epoch."""
    number: int
    """Tells batches of the same second apart."""
    serial: int
    """Of the commit that was applied before the run."""

    @property
    def name(self) -> bytes:
        """Of its folder: SERIAL-TIME."""
        when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.since)).encode()
        return b"%d-%b" % (self.serial, when) + (b"-%d" % self.number if self.number else b"")


def parse_name(name: bytes) -> TrashBatch | None:
    """The batch of a folder's name; None: huai did not make that folder."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    serial, *when, number = found.groups()
    try:
        since = timegm((*map(int, when), 0, 0, 0))
    except ValueError:
        return None
    batch = TrashBatch(since, int(number or 0), int(serial))
    return batch if batch.name == name else None


class Trash:
    """The trash of the tree at `dest`; `PathError` or `StorageError` if it cannot be used."""

    def __init__(self, dest: Path) -> None:
        self._dest = dest

    def batches(self) -> list[TrashBatch]:
        """All batches, the oldest first."""
        with self._opened() as handle:
            return _batches(handle)

    def purge(self, span: str, now: int) -> int:
        """Delete batches older than `span`; returns the time of the oldest one left, or 0."""
        with self._opened() as handle:
            for batch in _batches(handle):
                if not overdue(batch.since, span, now):
                    return batch.since
                self._remove(handle, batch)
        return 0

    def discard(self, path: RelPath) -> None:
        """Delete one kept file, unless its batch is gone."""
        with (
            at(path),
            suppress(FileNotFoundError),
            self._dest_opened() as dest,
            handles.opened(dest, parent(path)) as folder,
        ):
            os.unlink(basename(path), dir_fd=folder)

    def new_batch(self, serial: int) -> RelPath:
        """The folder of a new batch, below which files are kept under their paths; not yet made.

        `serial` is that of the applied commit.
        """
        return join(TRASH, self._free_name(serial))

    def _free_name(self, serial: int) -> bytes:
        taken = {batch.name for batch in self.batches()}
        batch = TrashBatch(int(time.time()), 0, serial)
        while batch.name in taken:
            batch = batch._replace(number=batch.number + 1)
        return batch.name

    def free_space_and_retry(self, work: Callable[[], T], on_message: Callable[[str], None]) -> T:
        """Do `work`; if the disk is full, delete the oldest batches and do it again.

        Deletes as few of them as are needed, and none if all together are not enough.
        """
        while True:
            try:
                return work()
            except NoSpaceError as error:
                going = self._enough(error)
                if not going:
                    raise
            with self._opened() as handle:
                for batch in going:
                    self._remove(handle, batch)
                    on_message(
                        f"no room, so {os.fsdecode(batch.name)} leaves the trash before its time"
                    )

    def _enough(self, error: NoSpaceError) -> list[TrashBatch]:
        """The oldest batches, as many as are needed; empty if all together are not enough."""
        size = inodes = 0
        with self._opened() as handle:
            batches = _batches(handle)
            for number, batch in enumerate(batches, 1):
                for status in _alone(handle, batch):
                    size += bytes_on_disk(status)
                    inodes += 1
                if size >= error.bytes_short and inodes >= error.inodes_short:
                    return batches[:number]
        return []

    def _remove(self, handle: int | None, batch: TrashBatch) -> None:
        """Delete a batch; with the last one also the folders above it, if they are empty."""
        if handle is None:
            return
        _native.remove_all(handle, batch.name)
        with suppress(OSError), self._dest_opened() as dest:
            with handles.opened(dest, STAGING_NAME) as above:
                os.rmdir(TRASH_NAME, dir_fd=above)
            os.rmdir(STAGING_NAME, dir_fd=dest)

    @contextmanager
    def _opened(self) -> Iterator[int | None]:
        """A handle of the trash; None: there is none."""
        with at(TRASH), ExitStack() as stack:
            dest = stack.enter_context(self._dest_opened())
            try:
                handle = stack.enter_context(handles.opened(dest, TRASH))
            except FileNotFoundError:
                yield None
            else:
                yield handle

    @contextmanager
    def _dest_opened(self) -> Iterator[int]:
        dest = os.open(self._dest, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield dest
        finally:
            os.close(dest)


def _alone(handle: int | None, batch: TrashBatch) -> Iterator[os.stat_result]:
    """The files of a batch without another name: their room is freed with it."""
    if handle is None:
        return
    for path, leaves in handles.directories(handle, batch.name):
        with handles.opened(handle, path) as folder:
            for leaf in leaves:
                status = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
                if status.st_nlink == 1:
                    yield status


def _batches(handle: int | None) -> list[TrashBatch]:
    names = [] if handle is None else handles.list_names(handle)
    return sorted(batch for batch in map(parse_name, names) if batch is not None)
