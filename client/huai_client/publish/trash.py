"""The trash: deleted and replaced files, kept in batches for a while, purged or restored.

A run that deletes or replaces files makes a batch, a folder below DEST/.~tmp~/huai-trash with the
paths of the tree.  Rule: only folders with the name of a
batch are removed, the oldest first.  The cost of a purge is that of its deletions.
"""

import os
import re
import time
from calendar import timegm
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple, TypeVar

from huai_client.diff.candidate import Reuse
from huai_client.diff.candidates import digest_here
from huai_client.plan.operations import Plan
from huai_client.run.ages import overdue
from huai_client.tree import STAGING_NAME, View, handles
from huai_client.tree.destination import NoSpaceError, bytes_on_disk
from huai_client.tree.errors import at
from huai_client.tree.handles import closing
from huai_native import _native
from huai_schema.entries import File
from huai_schema.paths import RelPath, basename, join, parent

_NAME = re.compile(rb"([0-9]{1,19})-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z(?:-([0-9]{1,9}))?")
T = TypeVar("T")
TRASH_NAME = b"huai-trash"
TRASH = RelPath(STAGING_NAME + b"/" + TRASH_NAME)


class TrashBatch(NamedTuple):
    """The files that one run kept, in a folder of the trash."""

    since: int
    """The time of the first kept file, seconds since the epoch."""
    number: int
    """Distinguishes batches of the same second."""
    serial: int
    """The serial of the commit that was applied before the run."""

    @property
    def name(self) -> bytes:
        """The name of its folder: SERIAL-TIME."""
        when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.since)).encode()
        return b"%d-%b" % (self.serial, when) + (b"-%d" % self.number if self.number else b"")


def parse_name(name: bytes) -> TrashBatch | None:
    """Parse the name of a folder to a batch; None if the folder is not a batch."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    serial, *when, number = match.groups()
    try:
        since = timegm((*map(int, when), 0, 0, 0))
    except ValueError:
        return None
    batch = TrashBatch(since, int(number or 0), int(serial))
    return batch if batch.name == name else None


class Trash:
    """The trash of the tree at `dest`.

    Raises `PathError` or `StorageError` if it cannot be used.
    """

    def __init__(self, dest: Path) -> None:
        self._dest = dest

    def batches(self) -> list[TrashBatch]:
        """Return all batches, the oldest first."""
        with self._opened() as handle:
            return _batches(handle)

    def purge(self, span: str, now: int) -> int:
        """Delete batches older than `span`, such as "7d"; return the time of the oldest one left.

        That time and `now` are seconds since the epoch; 0 if no batch is left.
        """
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
        """Return the folder of a new batch, not yet made, for files under their paths.

        `serial` is that of the applied commit.
        """
        return join(TRASH, self._free_name(serial))

    def _free_name(self, serial: int) -> bytes:
        """Return a name of a batch that is not used yet."""
        names = {batch.name for batch in self.batches()}
        batch = TrashBatch(int(time.time()), 0, serial)
        while batch.name in names:
            batch = batch._replace(number=batch.number + 1)
        return batch.name

    def free_space_and_retry(self, work: Callable[[], T], on_message: Callable[[str], None]) -> T:
        """Call `work`; while it raises `NoSpaceError`, delete the oldest batches and call it again.

        Deletes as few of them as make up what is missing, with a message for each.  Deletes none,
        and raises, if all together are not enough.
        """
        while True:
            try:
                return work()
            except NoSpaceError as error:
                oldest = self._oldest_batches(error)
                if not oldest:
                    raise
            with self._opened() as handle:
                for batch in oldest:
                    self._remove(handle, batch)
                    name = os.fsdecode(batch.name)
                    message = f"the disk has too little room, so the trash {name} is deleted early"
                    on_message(message)

    def _oldest_batches(self, error: NoSpaceError) -> list[TrashBatch]:
        """Return as many of the oldest batches as free what is missing; empty if all do not."""
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
        """Delete a batch; with the last one also the empty folders above it."""
        if handle is None:
            return
        _native.remove_all(handle, batch.name)
        with suppress(OSError), self._dest_opened() as dest:
            with handles.opened(dest, STAGING_NAME) as above:
                os.rmdir(TRASH_NAME, dir_fd=above)
            os.rmdir(STAGING_NAME, dir_fd=dest)

    @contextmanager
    def _opened(self) -> Iterator[int | None]:
        """Yield a handle of the trash; None if it is missing."""
        with at(TRASH), ExitStack() as stack:
            dest = stack.enter_context(self._dest_opened())
            try:
                handle = stack.enter_context(handles.opened(dest, TRASH))
            except FileNotFoundError:
                yield None
            else:
                yield handle

    def _dest_opened(self) -> AbstractContextManager[int]:
        return closing(os.open(self._dest, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))


def _alone(handle: int | None, batch: TrashBatch) -> Iterator[os.stat_result]:
    """Yield the status of each file of a batch that has no other name.

    The space of such a file is freed with the batch.
    """
    if handle is None:
        return
    for path, leaves in handles.directories(handle, batch.name):
        with handles.opened(handle, path) as folder:
            for leaf in leaves:
                status = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
                if status.st_nlink == 1:
                    yield status


def _batches(handle: int | None) -> list[TrashBatch]:
    """Return the batches in the trash, the oldest first; other names are left out."""
    names = [] if handle is None else handles.list_names(handle)
    return sorted(batch for batch in map(parse_name, names) if batch is not None)


_MOST_LINKS = 1
"""A file with no other name than in the trash is moved back; any other one is copied."""


def restore(
    plan: Plan, batches: Sequence[TrashBatch], view: View, renames: Sequence[_native.Renames]
) -> tuple[Plan, list[File]]:
    """Return the plan with sources in the trash and the tree, and the files that have none.

    The trash has the files of a moved directory under the path that it had at the time, before one
    of `renames`.
    """
    reuses: dict[RelPath, Reuse] = {}
    missing: list[File] = []
    for file in (file for stage in plan.stages for file in stage.fetches):
        former = (each.before(file.path) for each in renames)
        kept_paths = dict.fromkeys((file.path, *(RelPath(path) for path in former if path)))
        kept_files = (_find_kept(file._replace(path=path), batches, view) for path in kept_paths)
        source = next(filter(None, kept_files), None) or _find_elsewhere(file, plan)
        source = source or _find_delayed(file, kept_paths, view)
        if source is None:
            missing.append(file)
        else:
            reuses[file.path] = source
    return replace(plan, reuses=reuses), missing


def _find_elsewhere(file: File, plan: Plan) -> Reuse | None:
    """Return the source that the plan has for `file`, to be proved by its digest.

    None without a source or a digest; a twin is returned unchanged, even without a digest.
    """
    reuse = plan.reuses.get(file.path)
    if reuse is None or reuse.twin:
        return reuse
    return None if file.digest is None else reuse._replace(sure=False)


def _find_delayed(file: File, paths: Iterable[RelPath], view: View) -> Reuse | None:
    """Return the file at one of `paths` in the tree that may have the wanted content, or None.

    It is in no snapshot: its directory was renamed, and its deletion is delayed.
    """
    for path in paths:
        status = view.stat(path)
        if status is None or not S_ISREG(status.st_mode) or status.st_size != file.size:
            continue
        if file.digest is not None or status.st_mtime_ns == file.mtime:
            return Reuse(path, status.st_mtime_ns, sure=file.digest is None)
    return None


def _find_kept(file: File, batches: Sequence[TrashBatch], view: View) -> Reuse | None:
    """Return the kept file of this path that may have the wanted content, or None.

    There may be several of the same size, because an interrupted undo keeps files as well.  Only
    then they are read.
    """
    candidates = list(_of_this_size(file, reversed(batches), view))
    if file.digest is None:
        return next((each for each in candidates if each.mtime == file.mtime), None)
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    candidates.sort(key=lambda each: each.mtime != file.mtime)
    return next(
        (each for each in candidates if digest_here(view, each.source) == file.digest), None
    )


def _of_this_size(file: File, batches: Iterable[TrashBatch], view: View) -> Iterator[Reuse]:
    """Yield the trashed files of this path and size, each inode once."""
    inodes: set[tuple[int, int]] = set()
    for batch in batches:
        path = RelPath(join(TRASH, batch.name) + b"/" + file.path)
        status = view.stat(path)
        if status is None or not S_ISREG(status.st_mode) or status.st_size != file.size:
            continue
        if (status.st_dev, status.st_ino) not in inodes:
            inodes.add((status.st_dev, status.st_ino))
            yield Reuse(path, status.st_mtime_ns, most_links=_MOST_LINKS, sure=file.digest is None)
