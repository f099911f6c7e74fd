"""The operations that change a downstream tree, below one handle of DEST.

Rules to keep: no operation follows a symlink in any component.  An entry gets its attributes first
and its name last, by one rename.  Temporary names are made in the staging area, never beside the
target, and no operation accepts a path there.  Repeating an operation does no harm.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

from huai_client.modes import Kept
from huai_client.tree import attributes
from huai_client.tree.errors import NotEmptyError, PathError, at
from huai_client.tree.handles import handle_path
from huai_client.tree.reserved import STAGING, is_reserved, open_own
from huai_client.tree.view import ABSENT, View
from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import RESERVED, ROOT, RelPath, ancestors, basename, join, parent, show

Staged: TypeAlias = tuple[int, bytes]
"""A file to publish: the handle of its directory in the staging area, and its name there."""

_MAKING = b"making"
_NO_LINKS = (errno.EPERM, errno.EMLINK, errno.ENOTSUP)
_SECOND = 1_000_000_000
_INODE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class Tree(View):
    """One downstream tree to change.

    A directory of this user that lacks u+rwx gets these rights when they are needed, until
    `set_directory` or `close`.
    """

    def __init__(
        self,
        dest: Path,
        *,
        owners: bool = True,
        keep: Callable[[RelPath], RelPath] | None = None,
    ) -> None:
        """Open DEST, which has to belong to this user; `owners` as for `View`.

        `keep` gives the path below DEST to which a deleted or replaced leaf goes; None: none is
        kept.  A file that is replaced gets this second name before the new file takes its place.
        Directories are not kept.

        Raises:
            DestinationError: DEST cannot be used.
        """
        super().__init__(dest, write=True, owners=owners)
        self._umask = _umask()
        self._fresh: set[RelPath] = set()
        """Directories made by this object whose mode is `Kept`: it is set once, less the umask."""
        self._area = -1
        self._keep = keep
        self._keeping: set[RelPath] = set()
        """The directories that were made for `keep`."""

    def close(self) -> None:
        """Close every handle; directories that were opened up get their modes back."""
        super().close()
        if self._area >= 0:
            os.close(self._area)
            self._area = -1

    # Directories

    def make_directory(self, path: RelPath, like: Directory | None = None) -> None:
        """Make a directory, unless it exists; its owner can write to it until `set_directory`.

        `like` has the owner and mode that it gets at once, so that published files can be read
        before the run ends.
        """
        with _changing(path):
            if self._make(path) and like is not None and isinstance(like.mode, Kept):
                self._fresh.add(path)
            if like is not None:
                handle = self._folders.open(path)
                attributes.set_owner(handle, like, self.owners)
                if path in self._fresh or not isinstance(like.mode, Kept):
                    attributes.set_mode(handle, self._anew(like.mode) | 0o700)

    def _make(self, path: RelPath) -> bool:
        """Make a directory; False: it existed."""
        try:
            self._permitted(partial(self._mkdir, path), parent(path))
        except FileExistsError:
            if not self._is(stat.S_ISDIR, path):
                raise
            return False
        return True

    def _mkdir(self, path: RelPath) -> None:
        os.mkdir(basename(path), 0o700, dir_fd=self._folders.open(parent(path)))

    def set_directory(self, wanted: Directory) -> None:
        """Give a directory its final attributes, times included."""
        path = wanted.path
        if path in self._fresh:
            wanted = wanted._replace(mode=self._anew(wanted.mode))
        with _changing(path):
            attributes.set_all(self._folders.open(path), wanted, self.owners)
            if not isinstance(wanted.mode, Kept):
                self._folders.settled(path)

    def remove_directory(self, path: RelPath) -> None:
        """Remove an empty directory, if it exists.

        Raises:
            NotEmptyError: it is not empty.
        """
        with _changing(path):
            try:
                self._permitted(lambda: self._rmdir(path), parent(path))
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise NotEmptyError(path) from error
                if error.errno not in ABSENT or self.stat(path) is not None:
                    raise
            self._folders.forget(path)

    def _rmdir(self, path: RelPath) -> None:
        os.rmdir(basename(path), dir_fd=self._folders.open(parent(path)))

    def move(self, old: RelPath, new: RelPath, forward: Symlink | None = None) -> None:
        """Rename a directory with everything below it to a path where nothing stands.

        `forward` is a symlink that takes the place of `old` at the same moment.
        """
        with _changing(new, old):
            if not self._is(stat.S_ISDIR, old):
                raise PathError(old, "there is no directory to move")
            if forward is not None:
                if self.stat(new) is not None:
                    raise PathError(new, "something stands there already")
                self.symlink(forward._replace(path=new))
            try:
                # The moved directory has to be writable too, because its ".." changes.
                rename = partial(self._rename_directory, old, new, swap=forward is not None)
                self._permitted(rename, parent(old), parent(new), old)
            except OSError as error:
                if error.errno != errno.EXDEV or self._device(old) != self._device(parent(new)):
                    raise
                # An overlay renames no directory of a lower layer.
                if forward is not None:
                    os.unlink(basename(new), dir_fd=self._folders.open(parent(new)))
                self._move_by_entry(old, new)
            self._folders.forget(old, new)
        if forward is not None and self.stat(old) is None:
            self.symlink(forward)

    def _rename_directory(self, old: RelPath, new: RelPath, *, swap: bool) -> None:
        """Rename `old` to `new`; with `swap`, exchange the two."""
        # ctypes costs start-up time that only runs with changes should pay.
        from huai_client.tree.system import exchange, rename_to_nothing

        source, target = self._folders.open(parent(old)), self._folders.open(parent(new))
        if not swap or not exchange(source, basename(old), target, basename(new)):
            if swap:
                with suppress(FileNotFoundError):
                    os.unlink(basename(new), dir_fd=target)
            rename_to_nothing(source, basename(old), target, basename(new))

    # Files and symlinks

    def publish(self, staged: Staged, wanted: File) -> None:
        """Rename a staged file, complete and verified, to the path of `wanted`.

        It is on the file system of DEST; owner, mode and times are set before the rename.
        """
        self.set_metadata(staged, wanted)
        self.rename_into_place(staged, wanted)

    def set_metadata(self, staged: Staged, wanted: File) -> None:
        """The first half of `publish`: set owner, mode and times."""
        handle, name = staged
        with _changing(wanted.path):
            if isinstance(wanted.mode, Kept):
                wanted = wanted._replace(mode=self._mode_there(wanted))
            self._settle(os.open(name, _INODE, dir_fd=handle), wanted)

    def _mode_there(self, wanted: File) -> int:
        """The mode of the file that `wanted` replaces; if there is none, that of a new file."""
        present = self.stat(wanted.path)
        if present is not None and stat.S_ISREG(present.st_mode):
            return stat.S_IMODE(present.st_mode)
        return self._anew(wanted.mode)

    def rename_into_place(self, staged: Staged, wanted: File) -> None:
        """The second half of `publish`: rename the file."""
        with _changing(wanted.path):
            self._put(staged, wanted.path)

    def link(self, wanted: File) -> None:
        """Make a hardlink of the file at `wanted.link`, replacing a leaf.

        The file has to have the attributes of `wanted`: otherwise its content may be another.
        """
        path, leader = wanted.path, wanted.link
        if leader is None:
            raise PathError(path, "planned as a hardlink without a leader")
        with _changing(path, leader):
            handle = self._open_leader(path, leader)
            try:
                first, present = os.fstat(handle), self.stat(path)
                if not self._is_as_stated(first, wanted):
                    raise PathError(
                        path, f"the file to link to is not what it should be: {show(leader)}"
                    )
                if present is None or not os.path.samestat(first, present):
                    self._replace(path, partial(_link, handle))
            finally:
                os.close(handle)

    def symlink(self, wanted: Symlink) -> None:
        """Make a symlink, replacing a leaf."""

        def make(folder: int, name: bytes) -> None:
            os.symlink(wanted.target, name, dir_fd=folder)
            attributes.set_symlink(folder, name, wanted, self.owners)

        with _changing(wanted.path):
            self._replace(wanted.path, make)

    def set_attributes(self, wanted: File | Symlink) -> None:
        """Set owner, mode and times of an existing file or symlink.

        Raises:
            PathError: `wanted.path` is of another type.
        """
        path = wanted.path
        with _changing(path):
            if isinstance(wanted, File):
                self._settle(self._permitted(partial(self._open_inode, path), parent(path)), wanted)
            elif self._is(stat.S_ISLNK, path):
                folder = self._folders.open(parent(path))
                attributes.set_symlink(folder, basename(path), wanted, self.owners)
            else:
                raise PathError(path, "not a symlink")

    def remove(self, path: RelPath) -> None:
        """Unlink a file, symlink or special file, if it exists."""
        with _changing(path):
            try:
                self._permitted(lambda: self._unlink(path), parent(path))
            except OSError as error:
                if error.errno not in ABSENT or self.stat(path) is not None:
                    raise

    def _unlink(self, path: RelPath) -> None:
        folder = self._folders.open(parent(path))
        if self._keep is None:
            os.unlink(basename(path), dir_fd=folder)
            return
        os.stat(basename(path), dir_fd=folder, follow_symlinks=False)
        kept = self._kept(path, self._keep)
        source, target = self._folders.open(parent(path)), self._folders.open(parent(kept))
        os.rename(basename(path), basename(kept), src_dir_fd=source, dst_dir_fd=target)

    # The whole

    def sync(self) -> None:
        """Write all changes to disk: syncfs(2)."""
        from huai_client.tree.system import sync_file_system

        with at(ROOT):
            sync_file_system(self._root)

    def sync_top(self) -> None:
        """Write the names in the top directory and its attributes to disk: fsync(2)."""
        with at(ROOT):
            os.fsync(self._root)

    def restore_modes(self) -> list[RelPath]:
        """Restore the modes of directories that got u+rwx; returns the paths where this failed."""
        return [RelPath(path) for path in self._folders.restore_modes()]

    # Inside

    def _anew(self, mode: int) -> int:
        """The mode of a new file or directory: a `Kept` mode less the umask."""
        return mode & ~self._umask if isinstance(mode, Kept) else mode

    def _is(self, kind: Callable[[int], bool], path: RelPath) -> bool:
        status = self.stat(path)
        return status is not None and kind(status.st_mode)

    def _device(self, path: RelPath) -> int:
        return os.fstat(self._folders.open(path)).st_dev

    def _open_inode(self, path: RelPath) -> int:
        return os.open(basename(path), _INODE, dir_fd=self._folders.open(parent(path)))

    def _open_leader(self, path: RelPath, leader: RelPath) -> int:
        try:
            return self._permitted(partial(self._open_inode, leader), parent(leader))
        except OSError as error:
            if error.errno not in ABSENT:
                raise
        raise PathError(path, f"the file to link to is missing: {show(leader)}")

    def _is_as_stated(self, status: os.stat_result, wanted: File) -> bool:
        """Whether a file with this status has the attributes of `wanted`."""
        mtime = wanted.mtime
        if status.st_mtime_ns % _SECOND == 0:
            mtime -= mtime % _SECOND  # there are file systems that keep no more
        owners = self.owners
        return (
            stat.S_ISREG(status.st_mode)
            and (status.st_size, status.st_mtime_ns) == (wanted.size, mtime)
            and (isinstance(wanted.mode, Kept) or stat.S_IMODE(status.st_mode) == wanted.mode)
            and (owners is None or owners.uid(wanted.owner, status.st_uid) == status.st_uid)
            and (owners is None or owners.gid(wanted.group, status.st_gid) == status.st_gid)
        )

    def _settle(self, handle: int, wanted: File) -> None:
        """Set all attributes of the file `handle`, and close it."""
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise PathError(wanted.path, "not a regular file")
            attributes.set_all(handle, wanted, self.owners)
        finally:
            os.close(handle)

    def _put(self, staged: Staged, path: RelPath) -> None:
        if self._keep is not None:
            self._keep_former(path, self._keep)
        handle, name = staged

        def rename() -> None:
            target = self._folders.open(parent(path))
            os.rename(name, basename(path), src_dir_fd=handle, dst_dir_fd=target)

        self._permitted(rename, parent(path))

    def _keep_former(self, path: RelPath, keep: Callable[[RelPath], RelPath]) -> None:
        """Link the file at `path`, which is about to be replaced, to the path that `keep` gives."""
        status = self.stat(path)
        if status is None or stat.S_ISDIR(status.st_mode):
            return
        kept = self._kept(path, keep)
        source, target = self._folders.open(parent(path)), self._folders.open(parent(kept))
        names = basename(path), basename(kept)
        try:
            with suppress(FileExistsError):  # this run kept an older file of that path: it counts
                os.link(*names, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            raise PathError(path, "cannot be kept in the trash: no hardlink can be made") from error

    def _kept(self, path: RelPath, keep: Callable[[RelPath], RelPath]) -> RelPath:
        """The path to which `keep` sends `path`; makes the directories above it."""
        if not self._keeping:
            self._staging()
            self._keeping.add(ROOT)
        kept = keep(path)
        for folder in reversed(ancestors(kept)):
            if folder not in self._keeping:
                self._make(folder)
                self._keeping.add(folder)
        return kept

    def _replace(self, path: RelPath, make: Callable[[int, bytes], None]) -> None:
        """Make an entry under a temporary name, then rename it to `path`."""
        folder = self._staging()
        try:
            try:
                make(folder, _MAKING)
            except FileExistsError:
                # Left behind by a run that was killed here.
                os.unlink(_MAKING, dir_fd=folder)
                make(folder, _MAKING)
            self._put((folder, _MAKING), path)
        except OSError:
            with suppress(FileNotFoundError):
                os.unlink(_MAKING, dir_fd=folder)
            raise

    def _staging(self) -> int:
        """The staging area's handle, opened on first use; raises `NotOursError`."""
        if self._area >= 0 and not os.fstat(self._area).st_nlink:
            os.close(self._area)  # the staging area was removed since
            self._area = -1
        if self._area < 0:
            self._area = open_own(self._root, self.dest, STAGING)
        return self._area

    def _move_by_entry(self, old: RelPath, new: RelPath) -> None:
        """Move a directory where the kernel cannot rename it: make it again, rename its leaves.

        An interruption leaves entries in both places.
        """
        from huai_client.tree.system import rename_to_nothing

        pending, done = [(old, new)], []
        while pending:
            source, target = pending.pop()
            done.append((source, target, os.fstat(self._folders.open(source))))
            self._permitted(partial(self._mkdir, target), parent(target))
            leaves, folders = self.listing(source)

            def rename(name: bytes, source: RelPath = source, target: RelPath = target) -> None:
                places = self._folders.open(source), name, self._folders.open(target), name
                rename_to_nothing(*places)

            for name in leaves:
                self._permitted(partial(rename, name), source)
            pending += [(join(source, name), join(target, name)) for name in folders]
        for source, target, status in reversed(done):
            handle = self._folders.open(target)
            if self.owners is not None:
                os.chown(handle_path(handle), status.st_uid, status.st_gid)
            attributes.set_mode(handle, stat.S_IMODE(status.st_mode))
            attributes.set_mtime(handle, status.st_mtime_ns)
            self._permitted(partial(self._rmdir, source), parent(source))
            self._folders.forget(source, target)


@contextmanager
def _changing(path: RelPath, *others: RelPath) -> Iterator[None]:
    """As `at`; raises `PathError` if a path contains the reserved name."""
    for each in (path, *others):
        if is_reserved(each):
            raise PathError(each, f"the name {show(RESERVED)} is reserved for huai's own files")
    with at(path):
        yield


def _link(handle: int, folder: int, name: bytes) -> None:
    """Make the hardlink `name` in `folder` of the file `handle`."""
    os.link(handle_path(handle), name, dst_dir_fd=folder, follow_symlinks=True)


def _umask() -> int:
    """The umask of this process, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
