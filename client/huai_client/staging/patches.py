"""Patches: the changed bytes of a large file of the tree that is changed in place.

A patch is a sparse file as large as the new version that holds the changed bytes; its journal
(`journals`) lists their ranges.  Order of writes: the space for the change; the patch, durable; its
journal, durable; a new time of the file, durable; the file's content, durable; then the journal is
deleted.  So after any interruption there is either no journal, and the old file, or a journal by
which `finish_patches` makes the new one from any intermediate state.  A journal that does not fit
is dropped: the time of the file is not that of any commit, so it is compared.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from huai_client.staging.journals import Journal, Journals, PatchState, hashed
from huai_client.staging.root import opened_tree
from huai_client.tree import STAGING, PathError, handles
from huai_client.tree.errors import at
from huai_client.tree.handles import closing
from huai_native import _native
from huai_schema.entries import File
from huai_schema.errors import HuaiError
from huai_schema.paths import RelPath, basename, join, parent, show

FOLDER = b"patches"
_DISK = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOMEM)
"""Errors of the disk, independent of the path."""


class PatchError(HuaiError):
    """The change of a file that an interrupted run began cannot be finished."""


class Patch(NamedTuple):
    """A change of a file of the tree to a new version."""

    file: File
    """The new version."""
    ranges: list[tuple[int, int]]
    """Begin and end of each changed range."""
    state: tuple[int, int, int]
    """Size, mtime and ctime (ns) of the old version."""


class Patches:
    """The folder `patches` of the staging area, made with the first patch of a file in place."""

    def __init__(self, root: int, journals: Journals | None) -> None:
        """List what interrupted runs left below `root`, the area's handle.

        `journals`: None if no file may be changed in place.
        """
        self._root = root
        self._journals = journals
        self._new: dict[RelPath, Patch] = {}
        self._left = set(_without_journal(root, journals))

    def __bool__(self) -> bool:
        """True if this run has a patch."""
        return bool(self._new)

    def __contains__(self, file: File) -> bool:
        """Return True if there is a patch that makes `file`."""
        return bool(self._new) and file.path in self._new and self._new[file.path].file == file

    @property
    def paths(self) -> frozenset[RelPath]:
        """The paths of the files with a patch."""
        return frozenset(self._new)

    @contextmanager
    def left_of(self, path: bytes) -> Iterator[int | None]:
        """Yield a handle of the patch that an interrupted run left for `path`, or None.

        It changed nothing of the tree.  Its bytes have to be proved.
        """
        name = hashed(path)
        if name not in self._left:
            yield None
            return
        with self._opened() as patches, handles.opened_file(patches, name) as handle:
            yield handle

    def drop_left_of(self, path: bytes) -> None:
        """Drop the patch that an interrupted run left for `path`."""
        self._remove(self._left & {hashed(path)})

    def prune(self, paths: Iterable[bytes]) -> None:
        """Drop the patches that interrupted runs left, except those of `paths`."""
        self._remove(self._left - {hashed(path) for path in paths if self._left})

    def _remove(self, left: set[bytes]) -> None:
        """Delete the patches of these names."""
        if left:
            with self._opened() as patches:
                for name in left:
                    _native.remove_all(patches, name)
            self._left -= left

    def keep(self, patch: Patch, folder: int) -> None:
        """Take over the patch at the path of its file below `folder`."""
        path = patch.file.path
        with handles.opened(folder, parent(path)) as above, self._opened() as patches:
            os.rename(basename(path), hashed(path), src_dir_fd=above, dst_dir_fd=patches)
        self._left.discard(hashed(path))
        self._new[path] = patch

    def apply(self, file: File, ready: int, key: bytes) -> None:
        """Change the file of the tree, and link it as `key` into the directory `ready`.

        Forgets the patch.  Raises `PathError` if another program has changed the file, or it cannot
        be written, `StorageError` if the disk is full or fails.
        """
        with at(file.path):
            self._apply(self._new.pop(file.path), ready, key)

    def _apply(self, patch: Patch, ready: int, key: bytes) -> None:
        """Write the journal, change the file, link it as ready, and drop journal and patch.

        Raises `PathError` if the file changed since the patch was made.
        """
        assert self._journals is not None  # noqa: S101 - else no patch is made
        file, name = patch.file, basename(patch.file.path)
        with opened_tree(self._root) as dest, self._opened() as patches:
            with handles.opened(dest, parent(file.path)) as above:
                with handles.opened_file(above, name, os.O_RDWR) as target:
                    status = os.fstat(target)
                    if file_state(status) != patch.state or status.st_nlink != 1:
                        raise PathError(file.path, "it was changed while the sync ran")
                    with handles.opened_file(patches, hashed(file.path)) as content:
                        _native.reserve_patch(target, content, patch.ranges)
                        self._write_journal(self._journals, patch, status, content)
                        _change(target, content, patch.ranges)
                    os.utime(target, ns=(file.mtime, file.mtime))
                with suppress(FileNotFoundError):
                    os.unlink(key, dir_fd=ready)
                os.link(name, key, src_dir_fd=above, dst_dir_fd=ready, follow_symlinks=False)
            self._journals.drop(hashed(file.path))
            _native.remove_all(patches, hashed(file.path))

    def _write_journal(
        self, journals: Journals, patch: Patch, target: os.stat_result, content: int
    ) -> None:
        """Sync the patch to disk, then write the journal of its change."""
        os.fsync(content)
        # The directories above may be new, too.
        for above in (FOLDER, b".", b"..", b"../.."):
            with closing(handles.open_directory(self._root, above)) as handle:
                os.fsync(handle)
        state = PatchState.of(os.fstat(content))
        path, ranges = patch.file.path, patch.ranges
        journals.write(Journal(journals.dest, path, target.st_ino, target.st_size, state, ranges))

    def _opened(self) -> AbstractContextManager[int]:
        return closing(handles.own_directory(self._root, FOLDER))


def finish_patches(journals: Journals) -> list[str]:
    """Finish the changes that an interrupted run began, and delete their journals.

    Returns, for people, the paths of files that do not match their journals (any more); they are
    left as they are, and the next sync compares them.  Raises `PatchError` if the disk fails.
    """
    refused: list[str] = []
    current = b""
    try:
        for name, path, journal in journals.read_all():
            current = path
            if journal is None or not _finish(journal, name, path):
                refused.append(show(path) if journal else "a file whose journal is damaged")
            journals.drop(name)
            current = b""
    except OSError as error:
        place = f"{show(current)}: half changed" if current else "journals of changes"
        raise PatchError(
            f"{place} in place: {error.strerror}",
            hint="make room, or repair the disk, and sync again",
        ) from error
    return refused


def _finish(journal: Journal, name: bytes, path: RelPath) -> bool:
    """Change the tree's file at `path` in place by the patch `name`, and return True.

    False if either does not fit the journal, or for an `OSError` that is not the disk's.
    """
    dest = Path(os.fsdecode(journal.dest))
    with (
        _ignore_foreign_errors(),
        closing(os.open(dest, handles.DIRECTORY)) as top,
        handles.opened(top, join(STAGING, FOLDER)) as patches,
        handles.opened_file(patches, name) as content,
        handles.opened(top, parent(path)) as above,
        handles.opened_file(above, basename(path), os.O_RDWR) as target,
    ):
        fits = PatchState.of(os.fstat(content)) == journal.patch
        if fits and journal.is_of(os.fstat(target), os.fstat(top)):
            _change(target, content, journal.ranges)
            return True
    return False


@contextmanager
def _ignore_foreign_errors() -> Iterator[None]:
    """Ignore an `OSError` of the block, unless it is the disk's."""
    try:
        yield
    except OSError as error:
        if error.errno in _DISK:
            raise


def _without_journal(root: int, journals: Journals | None) -> set[bytes]:
    """Return the names of patches that are not being applied."""
    try:
        with closing(handles.open_directory(root, FOLDER)) as patches:
            names = handles.own_files(patches)
    except (FileNotFoundError, NotADirectoryError):
        return set()
    return names - journals.names() if journals else names


def _change(target: int, content: int, ranges: list[tuple[int, int]]) -> None:
    """Give `target` another time, then copy `ranges` of `content` into it, both durably."""
    # A power cut may keep content that is newer than its time.
    os.utime(target)
    os.fsync(target)
    _native.patch_file(target, content, ranges)


def file_state(status: os.stat_result) -> tuple[int, int, int]:
    """Return size, mtime and ctime (ns), which change with the content of a file."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns
