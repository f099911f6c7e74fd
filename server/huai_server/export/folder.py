"""The folder that an export writes to, in the tree or elsewhere; files are replaced as a whole.

No path below it is followed through a symlink.  A file that would not change is not touched, nor is
its directory, so that the next commit has no change.
Order of writes: the new content, durable, in `.~tmp~`, which commits leave out; then one rename to
its name.  The next run removes the files of one that was killed.
"""

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from itertools import chain
from typing import BinaryIO

from huai_program.configuration import user_name
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import RESERVED, RelPath, basename, join, parent, show
from huai_server.export.source import Existing, Exported

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNFINISHED = b"huai-export."
_MODE = 0o644
_DIRECTORY_MODE = 0o755
_SECOND = 10**9
_PART = 1 << 20


class ExportError(HuaiError):
    """A file cannot be written; the former one is unchanged."""

    exit_code = ExitCode.FILE_IO


class FolderError(HuaiError):
    """The folder cannot be used."""

    exit_code = ExitCode.DESTINATION


class ExportFolder:
    """An open directory, below which files are written; the owner must `close` it."""

    def __init__(self, path: bytes) -> None:
        """Open the directory `path`, also through symlinks; raises `FolderError` if that fails."""
        self._path = path
        try:
            self._handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise FolderError(
                f"{show(path)}: {error.strerror}", hint="make it, or name another folder"
            ) from error

    def close(self) -> None:
        """Close the directory."""
        os.close(self._handle)

    def make(self, directory: RelPath) -> None:
        """Make a directory and its missing parents; `FolderError` if one is a symlink or a file."""
        with self._enter(directory, make=True):
            pass

    def existing(self, paths: Exported) -> Iterator[Existing]:
        """Yield the exported files that exist, sorted by path; skip all but regular files."""
        for path in sorted(paths.files):
            with suppress(OSError, FolderError), self._enter(parent(path)) as directory:
                status = os.stat(basename(path), dir_fd=directory, follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    yield Existing(path, status.st_size, status.st_mtime_ns // _SECOND)

    def remove_unfinished(self, path: RelPath) -> None:
        """Remove what killed runs left in `.~tmp~` of the directory of the file at `path`.

        Removes `.~tmp~` if it is empty then.  Raises `FolderError` if another user may write there.
        """
        with suppress(FileNotFoundError), self._enter(parent(path)) as directory:
            with _staging(directory) as staging:
                for name in os.listdir(staging):
                    if os.fsencode(name).startswith(_UNFINISHED):
                        with suppress(IsADirectoryError):
                            os.unlink(name, dir_fd=staging)
            with suppress(OSError):  # other programs may stage there as well
                os.rmdir(RESERVED, dir_fd=directory)

    def replace(self, path: RelPath, parts: Iterator[bytes]) -> tuple[int, bool]:
        """Replace a file, unless it has this content; return its size, and True if it was replaced.

        `parts` are its content in consecutive pieces, read only as far as needed.  Makes missing
        directories.  Raises `ExportError` if it cannot be written, `FolderError` for a path through
        a symlink.
        """
        try:
            with self._enter(parent(path), make=True) as directory:
                return _replace_if_changed(directory, basename(path), parts)
        except OSError as error:
            raise ExportError(
                f"{show(join(self._path, path))}: {error.strerror or error}",
                hint="the former file is unchanged; try again once the cause is removed",
            ) from error

    @contextmanager
    def _enter(self, path: RelPath, *, make: bool = False) -> Iterator[int]:
        """Yield a handle of the directory at `path`, created with `make`.

        Raises `FolderError` if a component is a symlink or no directory, `FileNotFoundError` if it
        is missing.
        """
        handle = os.dup(self._handle)
        try:
            for name in path.split(b"/") if path else ():
                with suppress(FileExistsError):
                    if make:
                        os.mkdir(name, _DIRECTORY_MODE, dir_fd=handle)
                try:
                    below = os.open(name, _DIRECTORY, dir_fd=handle)
                except NotADirectoryError:
                    raise FolderError(
                        f"{show(join(self._path, path))}: {show(name)} is not a real directory",
                        hint="exports do not follow symlinks: name the real folder",
                    ) from None
                os.close(handle)
                handle = below
            yield handle
        finally:
            os.close(handle)


@contextmanager
def _staging(directory: int) -> Iterator[int]:
    """Yield a handle of `.~tmp~` in `directory`; `FolderError` if another user may write there.

    Raises `FileNotFoundError` if it is missing.
    """
    handle = os.open(RESERVED, _DIRECTORY, dir_fd=directory)
    try:
        status = os.fstat(handle)
        # The tree's owner may stage there too, and can replace any file of the tree anyway.
        owners = (os.geteuid(), os.fstat(directory).st_uid)
        if status.st_uid not in owners or status.st_mode & 0o022:
            raise FolderError(
                f"{show(RESERVED)}: another user may write there "
                f"(owner {user_name(status.st_uid)}, mode {stat.S_IMODE(status.st_mode):04o})",
                hint=f"remove the folder {show(RESERVED)}, or make it yours (chown, chmod go-w)",
            )
        yield handle
    finally:
        os.close(handle)


def _replace_if_changed(directory: int, name: bytes, parts: Iterator[bytes]) -> tuple[int, bool]:
    """Replace a file, durably, unless it has this content; return size, and True if replaced."""
    with _open_old(directory, name) as old:
        size, part = _skip_equal(old, parts)
        if part is None:
            return size, False
        with suppress(FileExistsError):
            os.mkdir(RESERVED, 0o700, dir_fd=directory)
        try:
            with _staging(directory) as staging:
                # Uploaders may write to the tree, so the name must be new and unpredictable.
                unfinished = _UNFINISHED + secrets.token_hex(8).encode()
                size = _write(staging, unfinished, old, size, chain((part,), parts))
                os.replace(unfinished, name, src_dir_fd=staging, dst_dir_fd=directory)
        finally:
            with suppress(OSError):
                os.rmdir(RESERVED, dir_fd=directory)
        os.fsync(directory)
    return size, True


@contextmanager
def _open_old(directory: int, name: bytes) -> Iterator[BufferedReader | None]:
    """Yield the old file, open; None if it is missing, unreadable or not a regular file."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(name, flags, dir_fd=directory)
    except OSError:
        yield None
        return
    with open(handle, "rb") as file:
        yield file if stat.S_ISREG(os.fstat(handle).st_mode) else None


def _skip_equal(old: BinaryIO | None, parts: Iterator[bytes]) -> tuple[int, bytes | None]:
    """Compare `parts` with the file `old`; return the number of equal bytes, and the next part.

    Equal contents give None for the part; if only `old` has more, the part is empty.
    """
    size = 0
    for part in parts:
        if old is None or old.read(len(part)) != part:
            return size, part
        size += len(part)
    return size, None if old is not None and not old.read(1) else b""


def _write(
    staging: int, name: bytes, old: BinaryIO | None, equal: int, rest: Iterable[bytes]
) -> int:
    """Write `equal` bytes of `old`, then `rest`, to a new file, durably; return its size."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(name, flags, 0o600, dir_fd=staging)
    try:
        with open(handle, "wb") as new:
            if old is not None:
                _copy(old, new, equal)
            new.writelines(rest)
            new.flush()
            os.fchmod(handle, _MODE)
            os.fsync(handle)
            return new.tell()
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=staging)
        raise


def _copy(old: BinaryIO, new: BinaryIO, size: int) -> None:
    """Copy the first `size` bytes of `old`."""
    old.seek(0)
    while size and (part := old.read(min(size, _PART))):
        new.write(part)
        size -= len(part)
