"""The operations on a downstream tree, each atomic, each below one handle of DEST.

Rules: no operation follows a symlink in any component; what is published gets its
attributes first and its name last, by one rename; temporary names live in the staging
folder, never beside their target.  Doing an operation twice does no harm.
"""

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from huai_client.modes import Kept
from huai_client.tree import attributes
from huai_client.tree.errors import PathError, StrangersError, at
from huai_client.tree.view import ABSENT, View
from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import ROOT, RelPath, basename, join, parent, rel_path, show

STAGING_NAME = b".~tmp~"
"""The folder that mirrors hide and rsync leaves out by custom; never part of a snapshot."""

STAGING = RelPath(STAGING_NAME + b"/huai")
"""Where temporary names are made."""

_TEMPORARY = join(STAGING, b"making")
_INODE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class Tree(View):
    """One downstream tree to change.

    A directory of ours that lacks u+rwx is opened up where that is needed, until
    `set_directory` or `close`.
    """

    def __init__(self, dest: Path, *, owners: bool = True) -> None:
        """Open DEST, which has to be ours; `owners` as for `View`.

        Raises:
            DestinationError: DEST cannot be used.
        """
        super().__init__(dest, write=True, owners=owners)
        self._umask = _umask()
        self._fresh: set[RelPath] = set()
        """Directories made here whose mode is for what is made anew."""

    # Directories

    def make_directory(self, path: RelPath, like: Directory | None = None) -> None:
        """Create a directory, open for its owner until `set_directory`; fine if it is there.

        `like` gives owner and mode from the start, so that what is published into it can
        be read before the run ends.
        """
        with at(path):
            try:
                self._permitted(lambda: self._mkdir(path), parent(path))
                if like is not None and isinstance(like.mode, Kept):
                    self._fresh.add(path)
            except FileExistsError:
                if not self._is(stat.S_ISDIR, path):
                    raise
            if like is not None:
                handle = self._folders.open(path)
                attributes.set_owner(handle, like, self.owners)
                if path in self._fresh or not isinstance(like.mode, Kept):
                    attributes.set_mode(handle, self._anew(like.mode) | 0o700)

    def _mkdir(self, path: RelPath) -> None:
        os.mkdir(basename(path), 0o700, dir_fd=self._folders.open(parent(path)))

    def set_directory(self, wanted: Directory) -> None:
        """Give a directory its final attributes, times included."""
        path = wanted.path
        if path in self._fresh:
            wanted = wanted._replace(mode=self._anew(wanted.mode))
        with at(path):
            attributes.set_all(self._folders.open(path), wanted, self.owners)
            if not isinstance(wanted.mode, Kept):
                self._folders.settled(path)

    def remove_directory(self, path: RelPath) -> None:
        """Remove an empty directory; fine if nothing is there.

        Raises:
            StrangersError: it is not empty.
        """
        with at(path):
            try:
                self._permitted(lambda: self._rmdir(path), parent(path))
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise StrangersError(path) from error
                if error.errno not in ABSENT or self.stat(path) is not None:
                    raise
            self._folders.forget(path)

    def _rmdir(self, path: RelPath) -> None:
        os.rmdir(basename(path), dir_fd=self._folders.open(parent(path)))

    def move(self, old: RelPath, new: RelPath, forward: Symlink | None = None) -> None:
        """Rename a directory with all that it holds to a path where nothing stands.

        `forward` is a symlink to stand at `old` from the same moment on.
        """
        # ctypes costs start-up time that only runs with changes should pay.
        from huai_client.tree.system import exchange, rename_to_nothing

        def rename() -> None:
            source = self._folders.open(parent(old))
            target = self._folders.open(parent(new))
            if forward is None or not exchange(source, basename(old), target, basename(new)):
                if forward is not None:
                    with suppress(FileNotFoundError):
                        os.unlink(basename(new), dir_fd=target)
                rename_to_nothing(source, basename(old), target, basename(new))

        with at(new):
            if not self._is(stat.S_ISDIR, old):
                raise PathError(old, "there is no directory to move")
            if forward is not None:
                if self.stat(new) is not None:
                    raise PathError(new, "something stands there already")
                self.symlink(forward._replace(path=new))
            # The moved one too: its ".." changes, so it has to be writable.
            self._permitted(rename, parent(old), parent(new), old)
            self._folders.forget(old, new)
        if forward is not None and self.stat(old) is None:
            self.symlink(forward)

    # Files and symlinks

    def publish(self, staged: Path, wanted: File) -> None:
        """Put a staged file, complete and verified, in the place of `wanted`.

        `staged` lies below DEST; owner, mode and times are set before the rename.
        """
        self.equip(staged, wanted)
        self.put(staged, wanted)

    def equip(self, staged: Path, wanted: File) -> None:
        """The first half of `publish`: owner, mode and times."""
        source = self._inside(staged, wanted.path)
        with at(wanted.path):
            if isinstance(wanted.mode, Kept):
                present = self.stat(wanted.path)
                kept = present is not None and stat.S_ISREG(present.st_mode)
                mode = (
                    stat.S_IMODE(present.st_mode) if present and kept else self._anew(wanted.mode)
                )
                wanted = wanted._replace(mode=mode)
            self._settle_file(source, wanted)

    def put(self, staged: Path, wanted: File) -> None:
        """The second half: the rename."""
        source = self._inside(staged, wanted.path)
        with at(wanted.path):
            self._rename(source, wanted.path)

    def link(self, leader: RelPath, path: RelPath) -> None:
        """Make `path` a hardlink of the file `leader`, replacing what is not a directory."""

        def make(folder: int, name: bytes) -> None:
            source = self._folders.open(parent(leader))
            os.link(
                basename(leader),
                name,
                src_dir_fd=source,
                dst_dir_fd=folder,
                follow_symlinks=False,
            )

        with at(path):
            first, present = self.stat(leader), self.stat(path)
            if first is None or not stat.S_ISREG(first.st_mode):
                raise PathError(path, f"the file to link to is missing: {show(leader)}")
            if present is None or not os.path.samestat(first, present):
                self._replace(path, make)

    def symlink(self, wanted: Symlink) -> None:
        """Make a symlink, replacing what is not a directory."""

        def make(folder: int, name: bytes) -> None:
            os.symlink(wanted.target, name, dir_fd=folder)
            attributes.set_symlink(folder, name, wanted, self.owners)

        with at(wanted.path):
            self._replace(wanted.path, make)

    def set_attributes(self, wanted: File | Symlink) -> None:
        """Set owner, mode and times of what is there, if it is of the wanted type."""
        path = wanted.path
        with at(path):
            if isinstance(wanted, File):
                self._settle_file(path, wanted)
            elif self._is(stat.S_ISLNK, path):
                folder = self._folders.open(parent(path))
                attributes.set_symlink(folder, basename(path), wanted, self.owners)
            else:
                raise PathError(path, "not a symlink")

    def remove(self, path: RelPath) -> None:
        """Unlink a file, symlink or special file; fine if nothing is there."""
        with at(path):
            try:
                self._permitted(lambda: self._unlink(path), parent(path))
            except OSError as error:
                if error.errno not in ABSENT or self.stat(path) is not None:
                    raise

    def _unlink(self, path: RelPath) -> None:
        os.unlink(basename(path), dir_fd=self._folders.open(parent(path)))

    # The whole

    def sync(self) -> None:
        """Bring everything to disk: syncfs(2)."""
        from huai_client.tree.system import sync_file_system

        with at(ROOT):
            sync_file_system(self._root)

    def sync_top(self) -> None:
        """Bring the names in the top directory and its attributes to disk: fsync(2)."""
        with at(ROOT):
            os.fsync(self._root)

    def tighten(self) -> list[RelPath]:
        """Put back the modes of directories that were opened up; returns where that failed."""
        return self._folders.tighten()

    # Inside

    def _anew(self, mode: int) -> int:
        """The mode of something that is made: less the umask if it is one that is kept later."""
        return mode & ~self._umask if isinstance(mode, Kept) else mode

    def _is(self, kind: Callable[[int], bool], path: RelPath) -> bool:
        status = self.stat(path)
        return status is not None and kind(status.st_mode)

    def _settle_file(self, path: RelPath, wanted: File) -> None:
        def open_inode() -> int:
            return os.open(basename(path), _INODE, dir_fd=self._folders.open(parent(path)))

        handle = self._permitted(open_inode, parent(path))
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise PathError(wanted.path, "not a regular file")
            attributes.set_all(handle, wanted, self.owners)
        finally:
            os.close(handle)

    def _rename(self, old: RelPath, new: RelPath) -> None:
        def rename() -> None:
            source = self._folders.open(parent(old))
            target = self._folders.open(parent(new))
            os.rename(basename(old), basename(new), src_dir_fd=source, dst_dir_fd=target)

        self._permitted(rename, parent(new))

    def _replace(self, path: RelPath, make: Callable[[int, bytes], None]) -> None:
        """Make something under a temporary name, then rename it over `path`."""
        try:
            folder = self._folders.open(STAGING)
        except FileNotFoundError:
            self.make_directory(RelPath(STAGING_NAME))
            self.make_directory(STAGING)
            folder = self._folders.open(STAGING)
        try:
            try:
                make(folder, basename(_TEMPORARY))
            except FileExistsError:
                # Left behind by a run that was killed here.
                self._unlink(_TEMPORARY)
                make(folder, basename(_TEMPORARY))
            self._rename(_TEMPORARY, path)
        except OSError:
            self.remove(_TEMPORARY)
            raise

    def _inside(self, staged: Path, path: RelPath) -> RelPath:
        base = os.fsencode(self.dest).rstrip(b"/") + b"/"
        raw = os.fsencode(staged)
        if not raw.startswith(base):
            raise PathError(path, f"staged outside of the tree: {staged}")
        return rel_path(raw[len(base) :], staging=True)


def _umask() -> int:
    """Of this process; it can only be asked for by setting another for a moment."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
