"""Patches: what changes in a large file of the tree that is changed where it stands.

A patch is a file as large as the new version that holds the changed bytes, and holes elsewhere; its
journal (`journals`) says where they belong.  Order of writes: the room for the change; the patch,
on the disk; its journal, on the disk; a new time of the file, on the disk; the file's content, on
the disk; then the journal goes.  So after any cut there is either no journal, and the old file, or
a journal by which `finish_patches` makes the new one, however much of it was done.  A journal that
does not fit is dropped: the time of the file is not that of any commit, so it is compared.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from huai_client.staging.journals import Journal, Journals, PatchState
from huai_client.staging.names import hashed
from huai_client.staging.root import opened_tree
from huai_client.tree import STAGING, PathError, handles
from huai_client.tree.errors import at
from huai_native import _native
from huai_schema.entries import File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import RelPath, basename, join, parent, show

FOLDER = b"patches"
_DISK = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOMEM)
"""The disk refuses, whatever stands at the path."""


class PatchError(HuaiError):
    """The change of a file of the tree that an interrupted run began cannot be finished."""

    exit_code = ExitCode.FILE_IO


class Patch(NamedTuple):
    """How a file of the tree becomes another."""

    file: File
    """The new version."""
    ranges: list[tuple[int, int]]
    """Begin and end of what changes."""
    state: tuple[int, int, int]
    """Size, mtime and ctime (ns) of the old version."""


class Patches:
    """The folder `patches` below the staging area's handle; made when there is one."""

    def __init__(self, root: int, journals: Journals | None) -> None:
        """Look what interrupted runs left.  `journals`: None if no file may be changed."""
        self._root = root
        self._journals = journals
        self._kept: dict[RelPath, Patch] = {}
        self._left = set(_without_journal(root, journals))

    def __bool__(self) -> bool:
        """Whether any was kept in this run."""
        return bool(self._kept)

    def __contains__(self, file: File) -> bool:
        """Whether there is a patch that makes `file`."""
        return bool(self._kept) and file.path in self._kept and self._kept[file.path].file == file

    @property
    def paths(self) -> frozenset[RelPath]:
        """The files for which there is one."""
        return frozenset(self._kept)

    @contextmanager
    def left_of(self, path: bytes) -> Iterator[int | None]:
        """A handle of the patch that an interrupted run left for `path`; None: it left none.

        Nothing of the tree was changed by it.  It is to be read, and what is read proved.
        """
        name = hashed(path)
        if name not in self._left:
            yield None
            return
        with self._opened() as here, handles.opened_file(here, name) as handle:
            yield handle

    def drop_left_of(self, path: bytes) -> None:
        """Drop the patch that an interrupted run left for `path`."""
        self._remove(self._left & {hashed(path)})

    def prune(self, wanted: Iterable[bytes]) -> None:
        """Drop the patches that interrupted runs left for any path that is not `wanted`."""
        self._remove(self._left - {hashed(path) for path in wanted if self._left})

    def _remove(self, left: set[bytes]) -> None:
        if left:
            with self._opened() as here:
                for name in left:
                    _native.remove_all(here, name)
            self._left -= left

    def keep(self, patch: Patch, folder: int) -> None:
        """Take the patch that lies at the path of its file below `folder`."""
        path = patch.file.path
        with handles.opened(folder, parent(path)) as place, self._opened() as here:
            os.rename(basename(path), hashed(path), src_dir_fd=place, dst_dir_fd=here)
        self._left.discard(hashed(path))
        self._kept[path] = patch

    def apply(self, file: File, ready: int, key: bytes) -> None:
        """Change the file of the tree, and link it as `key` into the directory `ready`.

        Raises:
            PathError: it cannot be opened, or is not what it was.
            StorageError: the disk takes no changes.
        """
        with at(file.path):
            self._apply(self._kept.pop(file.path), ready, key)

    def _apply(self, patch: Patch, ready: int, key: bytes) -> None:
        assert self._journals is not None  # noqa: S101 - else no patch is made
        file, name = patch.file, basename(patch.file.path)
        with opened_tree(self._root) as dest, self._opened() as here:
            with handles.opened(dest, parent(file.path)) as above:
                with handles.opened_file(above, name, os.O_RDWR) as target:
                    found = os.fstat(target)
                    if state_of(found) != patch.state or found.st_nlink != 1:
                        raise PathError(file.path, "it was changed while the sync ran")
                    with handles.opened_file(here, hashed(file.path)) as content:
                        _native.reserve_patch(target, content, patch.ranges)
                        self._write_journal(self._journals, patch, found, content)
                        _change(target, content, patch.ranges)
                    os.utime(target, ns=(file.mtime, file.mtime))
                with suppress(FileNotFoundError):
                    os.unlink(key, dir_fd=ready)
                os.link(name, key, src_dir_fd=above, dst_dir_fd=ready, follow_symlinks=False)
            self._journals.drop(hashed(file.path))
            _native.remove_all(here, hashed(file.path))

    def _write_journal(
        self, journals: Journals, patch: Patch, target: os.stat_result, content: int
    ) -> None:
        os.fsync(content)
        # The directories above may be as new.
        for above in (FOLDER, b".", b"..", b"../.."):
            with _opened(self._root, above) as handle:
                os.fsync(handle)
        state = PatchState.of(os.fstat(content))
        path, ranges = patch.file.path, patch.ranges
        journals.write(Journal(journals.dest, path, target.st_ino, target.st_size, state, ranges))

    @contextmanager
    def _opened(self) -> Iterator[int]:
        handle = handles.own_directory(self._root, FOLDER)
        try:
            yield handle
        finally:
            os.close(handle)


def finish_patches(journals: Journals) -> list[str]:
    """Finish what an interrupted run had begun to change; name the files that were not finished.

    Those are not, or no longer, what their journals say.  The next sync compares them.

    Raises:
        PatchError: the disk refuses.
    """
    refused: list[str] = []
    for name, path, journal in journals.read():
        try:
            finished = journal is not None and _finish(journal, name, path)
        except OSError as error:
            raise PatchError(
                f"{show(path)}: half changed where it stands: {error.strerror}",
                hint="make room, or repair the disk, and sync again",
            ) from error
        if not finished:
            refused.append(show(path) if journal else "a file whose journal is damaged")
        journals.drop(name)
    return refused


def _finish(journal: Journal, name: bytes, path: RelPath) -> bool:
    """Finish one change; False if the patch or its target is not what the journal says."""
    dest = Path(os.fsdecode(journal.dest))
    with (
        _refused_is_fine(),
        _opened_path(dest) as top,
        handles.opened(top, join(STAGING, FOLDER)) as here,
        handles.opened_file(here, name) as content,
        handles.opened(top, parent(path)) as above,
        handles.opened_file(above, basename(path), os.O_RDWR) as target,
    ):
        fits = PatchState.of(os.fstat(content)) == journal.patch
        if fits and journal.is_of(os.fstat(target), os.fstat(top)):
            _change(target, content, journal.ranges)
            return True
    return False


@contextmanager
def _refused_is_fine() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _DISK:
            raise


def _without_journal(root: int, journals: Journals | None) -> set[bytes]:
    """Return the names of patches by which nothing is being changed."""
    try:
        with _opened(root, FOLDER) as here:
            names = handles.own_files(here)
    except (FileNotFoundError, NotADirectoryError):
        return set()
    return names - journals.names() if journals else names


def _change(target: int, content: int, ranges: list[tuple[int, int]]) -> None:
    # A power cut may keep content that is newer than its time.
    os.utime(target)
    os.fsync(target)
    _native.patch_file(target, content, ranges)


def state_of(found: os.stat_result) -> tuple[int, int, int]:
    """What tells one state of a file from another."""
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


@contextmanager
def _opened(folder: int, name: bytes) -> Iterator[int]:
    handle = os.open(name, handles.DIRECTORY, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def _opened_path(path: Path) -> Iterator[int]:
    handle = os.open(path, handles.DIRECTORY)
    try:
        yield handle
    finally:
        os.close(handle)
