"""The operations that change a downstream tree, below one handle of DEST, in rows of one kind.

The engine executes a row up to its first error; this converts the error.  Rules to keep: no
operation follows a symlink in any component.  An entry gets its attributes first and its name last,
by one rename.  Temporary names are made in the staging area, never next to the target, and no
operation accepts a path there.  Operations may be repeated.
"""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from huai_client.tree.errors import NotEmptyError, PathError, StorageError, at, path_error
from huai_client.tree.handles import handle_path
from huai_client.tree.reserved import STAGING, open_own
from huai_client.tree.view import View
from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import RESERVED, ROOT, RelPath, basename, parent, show

if TYPE_CHECKING:
    from huai_native import _native
    from huai_native._native import _Row


_ASIDE = b"aside"
"""The name of a hardlink in the staging area that will replace a file."""


class Places(NamedTuple):
    """The places of staged files, whose paths have no symlinks."""

    arrived: "_native.Arrived"
    runs: int
    """The handle of a directory with a folder for each run that brought files."""
    finished: int
    """The handle of the directory of all other files."""
    names: dict[int, bytes]
    """The names of those files, by their index."""


Removal: TypeAlias = tuple[RelPath, bool]
"""An entry to remove, and True for an empty directory; other entries are unlinked."""


class WholeDirectory(NamedTuple):
    """A directory of the staging area to publish with everything below it."""

    folder: int
    """The handle of a directory of the staging area."""
    name: bytes
    """A path below it without symlinks."""
    path: RelPath
    """The path to publish it at."""
    directories: tuple[Sequence[Directory], list[tuple[int, bool]]]
    """The directory and those below it, deepest first, with the number of staged names in each.

    Missing ones are made.  The last value is True if the directory gets its time as well, so that
    nothing is left to settle."""
    other_files: list[tuple[int, bytes, RelPath]]
    """Files staged elsewhere: handle, path below it, and the path of each."""
    links: list[File]
    """Hardlinks of files below it to make."""
    symlinks: list[Symlink]
    """Symlinks to make."""


_REASONS = {
    "leader differs": "the file to link to is not what it should be: {}",
    "leader missing": "the file to link to is missing: {}",
    "no directory": "the directory to move is missing",
    "no leader": "planned as a hardlink without a leader",
    "not a file": "not a regular file",
    "not a symlink": "not a symlink",
    "not kept": "cannot be kept in the trash: no hardlink can be made",
    "not whole": "not completely staged",
    "occupied": "the path exists already",
    "reserved": f"the name {show(RESERVED)} is reserved for huai's own files",
}


class RowResult(NamedTuple):
    """The result of a row of operations."""

    done: int
    """The number of operations that are done."""
    failure: PathError | StorageError | None
    """The error of the next operation, which ended the row; None if all are done."""


class Tree(View):
    """A downstream tree to change.

    A directory of this user that lacks u+rwx gets these rights when they are needed, until
    `settle_directories` or `close`.  A method that takes `items` executes them in order, up to the
    first failure, which is in its result.
    """

    def __init__(
        self, dest: Path, *, owners: bool = True, keep: Callable[[], RelPath] | None = None
    ) -> None:
        """Open DEST, which has to belong to this user, root aside; `owners` as for `View`.

        `keep` returns the directory in which deleted and replaced leaves are kept under their
        paths; it is called once, before the first row that may need it.  A replaced file gets this
        second name before the new file takes its place.  Directories are not kept.
        """
        super().__init__(dest, write=True, owners=owners)
        self._area = -1
        self._keep = keep

    def close(self) -> None:
        """Close every handle, and restore the modes of opened-up directories."""
        super().close()
        if self._area >= 0:
            os.close(self._area)
            self._area = -1

    def make_directories(self, items: Sequence[RelPath | Directory]) -> RowResult:
        """Make missing directories, which stay writable for their owner until they are settled.

        With an entry, a directory gets its owner and mode at once, even if it existed, so that
        published files can be read before the run ends.
        """
        return self._carry_out("make", items)

    def move_directories(
        self, items: Sequence[tuple[RelPath, RelPath]], forwards: Sequence[Symlink] = ()
    ) -> RowResult:
        """Rename directories with everything below them, from old to new path.

        Nothing exists at the new path.  Each of `forwards` replaces an old path at the same moment.
        """
        if forwards and (failed := self._stage(items[0][1])):
            return failed
        return _row(self._native.move_directories(items, forwards))

    def prepare_files(self, items: Sequence[File], places: Places) -> RowResult:
        """Give staged files owner, mode and times.

        They must be complete and verified, and on the file system of DEST.
        """
        return self._carry_out("prepare", items, places)

    def publish_files(self, items: Sequence[File], places: Places) -> RowResult:
        """Rename prepared files to their paths, replacing leaves, which are kept with `keep`."""
        return self._begin_keeping(items[0].path) or _row(
            self._native.carry_out("publish", items, places)
        )

    def publish_directories(self, items: Sequence[WholeDirectory]) -> RowResult:
        """Rename staged directories, whose files are prepared, to paths that do not exist.

        They stay writable for their owner until they are settled.  A directory that fails can still
        be published file by file.
        """
        return _row(self._native.publish_directories(items))

    def make_links(self, items: Sequence[File]) -> RowResult:
        """Make hardlinks of the files at `File.link`, replacing leaves.

        Each file must have the attributes of the entry: otherwise its content may differ.
        """
        return self._stage(items[0].path) or self._carry_out("link", items)

    def make_symlinks(self, items: Sequence[Symlink]) -> RowResult:
        """Make symlinks, replacing leaves, which are kept with `keep`."""
        return self._stage(items[0].path) or self._carry_out("symlink", items)

    def settle_leaves(self, items: Sequence[File | Symlink]) -> RowResult:
        """Set owner, mode and times of existing files and symlinks.

        An entry of another type is a failure.
        """
        return self._carry_out("attributes", items)

    def remove_entries(self, items: Sequence[Removal]) -> RowResult:
        """Remove entries; with `keep`, leaves go into the trash.  A directory must be empty."""
        return self._begin_keeping(items[0][0]) or self._carry_out("remove", items)

    def settle_directories(self, items: Sequence[Directory]) -> RowResult:
        """Give directories their final attributes, times included."""
        return self._carry_out("directory", items)

    @contextmanager
    def linked_aside(self, handle: int) -> Iterator[bytes]:
        """Yield another name of the open file `handle`, in the staging area; removed at the end.

        Raises `PathError`, `StorageError` or `OSError` if that fails.
        """
        failed = self._stage(ROOT)
        if failed is not None and failed.failure is not None:
            raise failed.failure
        with suppress(FileNotFoundError):
            os.unlink(_ASIDE, dir_fd=self._area)
        os.link(handle_path(handle), _ASIDE, dst_dir_fd=self._area)  # follows that symlink
        try:
            yield _ASIDE
        finally:
            with suppress(FileNotFoundError):
                os.unlink(_ASIDE, dir_fd=self._area)

    def replace_by(self, name: bytes, path: RelPath, inode: int) -> None:
        """Let the file `name` in the staging area replace that at `path`, if that is `inode` still.

        Its directory keeps its time.  Raises `PathError` or `StorageError` if that fails.
        """
        with at(path):
            folder = self._native.open(parent(path))
            status = os.fstat(folder)
            if os.stat(basename(path), dir_fd=folder, follow_symlinks=False).st_ino == inode:
                os.rename(name, basename(path), src_dir_fd=self._area, dst_dir_fd=folder)
                times = status.st_atime_ns, status.st_mtime_ns
                os.utime(handle_path(folder), ns=times)

    def sync_content(self, items: Sequence[File], places: Places) -> None:
        """Write staged files to disk: fsync(2)."""
        with at(ROOT):
            if not self._native.sync_staged(items, places):
                self._native.sync()

    def sync(self, changed: Sequence[RelPath] | None = None) -> None:
        """Write all changes to disk: syncfs(2), which writes those of other programs, too.

        Or only the files and directories `changed`, with the names in these: fsync(2).
        """
        with at(ROOT):
            if changed is None or not self._native.sync_paths(changed):
                self._native.sync()

    def sync_top(self) -> None:
        """Write the names in the top directory and its attributes to disk: fsync(2)."""
        with at(ROOT):
            self._native.sync_root()

    def restore_modes(self) -> list[RelPath]:
        """Restore the modes of opened-up directories; returns the paths where this failed."""
        return [RelPath(path) for path in self._native.restore_modes()]

    def _carry_out(
        self, step: "_native._Step", items: Sequence[Any], places: Places | None = None
    ) -> RowResult:
        return _row(self._native.carry_out(step, items, places))

    def _stage(self, path: RelPath) -> RowResult | None:
        """Open the staging area for a row that begins with `path`; return a failure, or None."""
        if self._area >= 0 and not os.fstat(self._area).st_nlink:
            os.close(self._area)  # the staging area was removed meanwhile
            self._area = -1
        if self._area < 0:
            try:
                self._area = open_own(self.handle, self.dest, STAGING)
                self._native.stage_in(self._area)
            except OSError as error:
                return RowResult(0, path_error(path, error.errno or errno.EIO))
        return self._begin_keeping(path)

    def _begin_keeping(self, path: RelPath) -> RowResult | None:
        """Before the first row, tell the engine where to keep the files that are replaced.

        The row begins with `path`.  Returns a failure, or None.
        """
        if self._keep is None:
            return None
        keep, self._keep = self._keep, None
        failed = self._stage(path)
        try:
            if failed is None:
                self._native.keep_below(keep())
        except (PathError, StorageError) as error:
            failed = RowResult(0, error)
        if failed is not None:
            self._keep = keep
        return failed


def _row(done: "_Row") -> RowResult:
    """Convert the engine's result of a row."""
    count, failed = done
    if failed is None:
        return RowResult(count, None)
    path, reason, code, other = RelPath(failed[0]), *failed[1:]
    if reason == "errno":
        return RowResult(count, path_error(path, code))
    if reason == "not empty":
        return RowResult(count, NotEmptyError(path))
    message = _REASONS[reason].format(show(RelPath(other or b"")))
    return RowResult(count, PathError(path, message, code))
