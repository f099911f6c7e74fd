"""Patches: what changes in a large file of the tree that is changed where it stands.

A patch is a file as large as the new version that holds the changed bytes, and holes elsewhere; its
journal says where they belong.  Order of writes: the patch, on the disk; its journal, on the disk;
the file of the tree, on the disk; then the journal goes.  So after any cut there is either no
journal, and the old file, or a journal by which `finish_patches` makes the new one, however much of
it was done.  It leaves the time of the change: whoever compares the tree next reads what it made.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import msgspec

from huai_client.transfer.staging.names import hashed
from huai_client.transfer.staging.root import open_root, opened_tree
from huai_client.tree import STAGING, PathError, View, handles
from huai_client.tree.errors import at
from huai_native import _native
from huai_schema.entries import File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import RelPath, basename, join, parent, show

FOLDER = b"patches"
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENXIO)
"""Nothing stands there, or no regular file."""
_JOURNAL, _NEW = b".journal", b".new"
_CHANGE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class PatchError(HuaiError):
    """A file of the tree cannot be changed where it stands."""

    exit_code = ExitCode.FILE_IO


class Patch(NamedTuple):
    """How a file of the tree becomes another."""

    file: File
    """The new version."""
    ranges: list[tuple[int, int]]
    """Begin and end of what changes."""
    state: tuple[int, int, int]
    """Size, mtime and ctime (ns) of the old version."""


class _Journal(msgspec.Struct, frozen=True):
    path: bytes
    ranges: list[tuple[int, int]]


class Patches:
    """The folder `patches` below the staging area's handle; made when there is one."""

    def __init__(self, root: int) -> None:
        """Looks what interrupted runs left."""
        self._root = root
        self._kept: dict[RelPath, Patch] = {}
        self._left = set(_without_journal(root))

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
        with self._opened() as here, _opened(here, name, _READ) as handle:
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

        Raises `PatchError` if it is not what it was, `StorageError` if the disk takes no changes.
        """
        try:
            with at(file.path):
                self._apply(self._kept.pop(file.path), ready, key)
        except PathError as error:
            raise PatchError(
                f"{show(file.path)}: {error.reason}",
                hint="look at the file and its permissions, and sync again",
            ) from error

    def _apply(self, patch: Patch, ready: int, key: bytes) -> None:
        file = patch.file
        with opened_tree(self._root) as dest, self._opened() as here:
            with handles.opened(dest, parent(file.path)) as above:
                name = basename(file.path)
                target = os.open(name, _CHANGE, dir_fd=above)
                try:
                    if state_of(os.fstat(target)) != patch.state:
                        raise PatchError(
                            f"{show(file.path)}: it was changed while the sync ran",
                            hint="sync again",
                        )
                    self._write_journal(here, patch)
                    _patch(here, target, _Journal(file.path, patch.ranges))
                    os.utime(target, ns=(file.mtime, file.mtime))
                finally:
                    os.close(target)
                with suppress(FileNotFoundError):
                    os.unlink(key, dir_fd=ready)
                os.link(name, key, src_dir_fd=above, dst_dir_fd=ready, follow_symlinks=False)
            _drop(here, hashed(file.path))

    def _write_journal(self, here: int, patch: Patch) -> None:
        name = hashed(patch.file.path)
        with _opened(here, name, _READ) as handle:
            os.fsync(handle)
        data = msgspec.msgpack.encode(_Journal(patch.file.path, patch.ranges))
        with _opened(here, name + _NEW, _WRITE) as handle:
            with open(handle, "wb", closefd=False) as file:
                file.write(data)
            os.fsync(handle)
        os.rename(name + _NEW, name + _JOURNAL, src_dir_fd=here, dst_dir_fd=here)
        os.fsync(here)
        # The directories above may be as new.
        for above in (b".", b"..", b"../.."):
            with _opened(self._root, above, handles.DIRECTORY) as handle:
                os.fsync(handle)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        handle = handles.own_directory(self._root, FOLDER)
        try:
            yield handle
        finally:
            os.close(handle)


def finish_patches(view: View) -> None:
    """Finish what an interrupted run had begun to change in the tree that is viewed.

    A file that is gone, or no regular one any more, is left as it is.  Raises `PatchError` if the
    disk refuses.
    """
    if view.stat(RelPath(join(STAGING, FOLDER))) is None:
        return
    root = open_root(view.dest / os.fsdecode(STAGING))
    try:
        with _opened(root, FOLDER, handles.DIRECTORY) as here:
            for name in sorted(handles.list_names(here)):
                if name.endswith(_JOURNAL):
                    _finish_one(root, here, name.removesuffix(_JOURNAL))
    except OSError as error:
        raise PatchError(
            f"{view.dest}: a file that was being changed where it stands is half changed: "
            f"{error.strerror}",
            hint="make room, or repair the disk, and sync again",
        ) from error
    finally:
        os.close(root)


def _finish_one(root: int, here: int, name: bytes) -> None:
    with _opened(here, name + _JOURNAL, _READ) as handle, open(handle, "rb", closefd=False) as file:
        journal = msgspec.msgpack.decode(file.read(), type=_Journal)
    path = RelPath(journal.path)
    with (
        _gone_is_fine(),
        opened_tree(root) as dest,
        handles.opened(dest, parent(path)) as above,
        _opened(above, basename(path), _CHANGE) as target,
    ):
        if stat.S_ISREG(os.fstat(target).st_mode):
            _patch(here, target, journal)
    _drop(here, name)


@contextmanager
def _gone_is_fine() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _GONE:
            raise


def _without_journal(root: int) -> list[bytes]:
    """The patches by which nothing is being changed, and journals that were never finished."""
    try:
        with _opened(root, FOLDER, handles.DIRECTORY) as here:
            names = {*handles.list_names(here)}
    except FileNotFoundError:
        return []
    return [name for name in names if name + _JOURNAL not in names and not name.endswith(_JOURNAL)]


def _patch(here: int, target: int, journal: _Journal) -> None:
    with _opened(here, hashed(journal.path), _READ) as patch:
        _native.patch_file(target, patch, journal.ranges)


def _drop(here: int, name: bytes) -> None:
    """The journal first: without it, the patch is nothing."""
    for each in (name + _JOURNAL, name):
        with suppress(FileNotFoundError):
            os.unlink(each, dir_fd=here)
        os.fsync(here)


def state_of(found: os.stat_result) -> tuple[int, int, int]:
    """What tells one state of a file from another."""
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


@contextmanager
def _opened(folder: int, name: bytes, flags: int) -> Iterator[int]:
    handle = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)
