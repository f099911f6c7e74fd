"""A read-only view of a downstream tree below one handle of DEST, which follows no symlink."""

import errno
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias, TypeVar

from huai_client.tree.destination import open_destination
from huai_client.tree.errors import PathError, at, moving, path_error
from huai_client.tree.handles import list_directory
from huai_client.tree.hashing import WORKERS
from huai_client.tree.owners import Names, Owners
from huai_native import _native
from huai_schema.entries import File
from huai_schema.paths import ROOT, RelPath, basename, parent

_CONTENT = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
T = TypeVar("T")
Finish: TypeAlias = tuple[Callable[[bytes], int | None], Callable[[bytes], int | None]]
"""Functions from names of users and groups to numbers, or None for owners that are not set."""


class View:
    """A downstream tree to read, as a context manager; changes nothing, not even a mode."""

    def __init__(self, dest: Path, *, write: bool = False, owners: bool = True) -> None:
        """Open DEST; only `Tree` sets `write`; without `owners` owners are never set.

        Raises `DestinationError` if DEST cannot be used.
        """
        self.dest = dest
        self.opens_up = write
        """True if directories of this user get u+rwx where it is needed."""
        self.handle = open_destination(dest, write=write)
        self.names = Names()
        self.owners = Owners() if owners and os.geteuid() == 0 else None
        """The numbers of owners to set; None if they cannot (not root) or must not be set."""
        self._renames = _native.Renames(())
        self._native = _native.Tree(
            self.handle,
            loosens=os.geteuid() if write else None,
            umask=_umask() if write else 0,
            owners=None if self.owners is None else (self.owners.user, self.owners.group),
        )

    @property
    def finish(self) -> Finish:
        """Functions from names of users and groups to numbers to set; None sets no owner."""
        owners = self.owners
        return (_unset, _unset) if owners is None else (owners.user, owners.group)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all handles, and restore the modes of opened-up directories."""
        try:
            self._native.restore_modes()
        finally:
            self._native.close()
            os.close(self.handle)

    def open_up(self, path: RelPath) -> bool:
        """Give a directory of this user u+rwx until `close`; return True if its mode was changed.

        Only `Tree` does: a view returns False.
        """
        with at(path):
            try:
                return self.opens_up and self._native.make_writable(path)
            except PermissionError:
                return False

    def refresh(self) -> None:
        """Drop the cached handles, so that renames by other processes are seen."""
        self._native.refresh()

    def stat(self, path: RelPath) -> os.stat_result | None:
        """Return the status of `path`; None if it does not exist.

        Gives the directory above it u+rwx first, if that is needed and the view may (`open_up`).
        Raises `PathError` if it cannot be read.
        """
        try:
            return self._stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return self._stat_carefully(path)

    def _stat_carefully(self, path: RelPath) -> os.stat_result | None:
        """Stat an entry after making its directory readable if needed; None if it is missing."""
        with at(path):
            try:
                return self._open_up_and_retry(lambda: self._stat(path), parent(path))
            except (FileNotFoundError, NotADirectoryError):
                return None

    def _stat(self, path: RelPath) -> os.stat_result:
        """Stat an entry without following symlinks; raises `OSError` if it is missing."""
        # Called for every path of a walk, so it makes as few system calls as possible.
        folder, _, name = path.rpartition(b"/")
        if not name:
            return os.fstat(self.handle)
        return os.stat(name, dir_fd=self._native.open(RelPath(folder)), follow_symlinks=False)

    def has_file(self, path: RelPath, size: int, mtime: int) -> bool:
        """Return True if a file of this size and time exists; False if it cannot be examined."""
        try:
            status = self.stat(path)
        except PathError:
            return False
        return (
            status is not None
            and stat.S_ISREG(status.st_mode)
            and (status.st_size, status.st_mtime_ns) == (size, mtime)
        )

    def is_directory(self, path: RelPath) -> bool:
        """Return True if `path` is a directory, False if missing; raises `PathError` as `stat`."""
        status = self.stat(path)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def survey(self, candidates: _native.Candidates) -> None:
        """Read the local attributes of all new `candidates` into them.

        Raises `PathError` if one cannot be read, or the leader of an expected hardlink.
        """
        with at(ROOT):
            refused = self._native.survey(candidates, self._renames)
        if refused is not None:
            path, code = RelPath(refused[0]), refused[1]
            raise moving(path) if code is None else path_error(path, code)

    def hash_candidates(
        self, candidates: _native.Candidates, damaged: bytes, tick: Callable[[], None]
    ) -> None:
        """Hash the candidates whose attributes do not show if they have the expected content.

        An unreadable one gets the digest `damaged`.  `tick` is called ten times a second, and may
        raise to end the reading, as does a `StorageError` of the disk.
        """
        if not candidates.unhashed():
            return
        failure = self._native.hash(candidates, self._renames, (damaged, WORKERS), tick)
        if failure is not None:
            raise path_error(RelPath(failure[0]), failure[1])

    def target(self, path: RelPath) -> bytes:
        """Return the target of a symlink; raises `PathError` if it cannot be read."""
        with at(path):
            return os.readlink(basename(path), dir_fd=self._native.open(parent(path)))

    def listing(self, path: RelPath) -> tuple[list[bytes], list[bytes]]:
        """Return the names in a directory, unsorted: leaves, then subdirectories.

        Gives the directory u+rwx first, if that is needed and the view may (`open_up`).  Raises
        `PathError` if it cannot be read.
        """
        with at(path):
            return self._open_up_and_retry(lambda: list_directory(self._native.open(path)), path)

    def open_file(self, path: RelPath) -> int:
        """Open a regular file for reading, or raise `PathError`; the caller closes the handle."""
        with at(path):
            handle = os.open(basename(path), _CONTENT, dir_fd=self._native.open(parent(path)))
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise PathError(path, "not a regular file")
        return handle

    def stage(
        self,
        files: tuple[Sequence[File], list[tuple[bytes, int, int, bool, bytes | None]]],
        until: int,
        area: tuple[int, int, int],
        may_continue: Callable[[int], bool],
    ) -> tuple[bytes, tuple[bytes, int] | None]:
        """Stage the first of `files` with content from the second, sources in this tree.

        Returns a byte for each file, 0 if it was not staged, and path and errno of a full disk, or
        None.  The arguments are those of the engine's `Tree.stage_copies`.
        """
        return self._native.stage_copies(files, until, area, may_continue)

    def _open_up_and_retry(self, operation: Callable[[], T], folder: RelPath) -> T:
        """Call `operation`; if it fails for lack of permission, give `folder` u+rwx and repeat."""
        try:
            return operation()
        except PermissionError as error:
            if error.errno != errno.EACCES or not self._native.make_writable(folder):
                raise
            return operation()


def _unset(_name: bytes) -> None:
    """Return None, because owners are not set."""


def _umask() -> int:
    """Return the umask of this process, which can be read only by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


class Unreadable(NamedTuple):
    """A path that cannot be read, so that it and the paths below it are unknown."""

    path: RelPath
    reason: str
    directory: bool = False
