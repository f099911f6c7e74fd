"""The files of newest commits, opened to be served.

A path is looked up in the newest commit, opened below the module's tree without following a
symlink, and compared: a served file has the size and the time that the commit records.  Reads
disks, so it runs in threads.
Rule: a path that the commit does not name as a file is not even looked up in the tree.
"""

import logging
import os
from pathlib import Path
from stat import S_IROTH, S_IXOTH
from typing import NamedTuple

from huai_native._native import open_regular
from huai_schema.entries import File
from huai_schema.errors import FormatError, HuaiError
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, parent, rel_path, show
from huai_server.config.tables import Module
from huai_server.config.volatile import Volatile
from huai_server.http.asgi.errors import HttpError
from huai_server.http.newest import Newest
from huai_server.store.block_indices import block_index_path

_SMALL_BYTES = 64 << 10
"""Reading more takes longer than passing it to another thread."""
_log = logging.getLogger(__name__)


class OpenFile(NamedTuple):
    """A file that matched its commit when opened; the owner must close the handle."""

    handle: int
    size: int
    mtime: int
    """Nanoseconds since the epoch."""
    etag: str
    label: str
    """Module and path, for the log."""
    beginning: bytes = b""
    """The content of a small file, read when it was opened."""

    def check(self) -> None:
        """Raise `FileChangedError` if the file has changed since it was opened."""
        status = os.fstat(self.handle)
        if (status.st_size, status.st_mtime_ns) != (self.size, self.mtime):
            raise FileChangedError(f"{self.label}: changed while it was being sent")


class FileChangedError(HuaiError):
    """A file was changed while it was being served."""


class CommittedFiles:
    """The files of one module's newest commit."""

    def __init__(self, name: str, module: Module, repository: Path) -> None:
        self._name = name
        self.module = module
        self.tree = os.fsencode(module.path)
        """The folder with the files."""
        self._is_volatile = Volatile(module.volatile)
        self._large_only = module.serve_content == "large"
        self._repository = repository
        self._newest = Newest(repository)

    def open(self, raw: bytes) -> OpenFile:
        """Open the file of the newest commit at the path `raw`; the caller closes its handle.

        Raises status 404 if the commit has no such file, or it is not served; 410 if the tree has
        it changed; 403 or 500 if it is unreadable.
        """
        try:
            path = rel_path(raw)
        except FormatError:
            raise _absent_error() from None
        entry = self._look_up(path)
        if entry is None or (self._large_only and not self._is_open(entry)):
            raise _absent_error()
        handle = self._open(path)
        try:
            return self._as_committed(entry, handle)
        except BaseException as error:
            os.close(handle)
            if isinstance(error, FileChangedError):
                raise _changed_error() from None
            raise

    def _look_up(self, path: RelPath) -> File | None:
        """Return the newest commit's file at `path`, or None; `HttpError` for damaged metadata."""
        try:
            committed = self._newest.find(path)
        except HuaiError as error:
            raise self.unreadable(error) from None
        return committed and committed.file

    def snapshot(self) -> Snapshot:
        """Return the snapshot of the newest commit.

        Raises 404 without a commit, or if only large files are served; 500 for damaged metadata.
        """
        if self._large_only:
            raise HttpError(404, "the module serves large files only")
        try:
            snapshot = self._newest.snapshot()
        except HuaiError as error:
            raise self.unreadable(error) from None
        if snapshot is None:
            raise HttpError(404, "this module has no commit yet")
        return snapshot

    def unreadable(self, error: HuaiError) -> HttpError:
        """Log an error, whose message has paths of this machine; return an error for clients."""
        _log.warning("%s: %s", self._name, error.message)
        return _unreadable_error("the module's metadata cannot be read")

    def _is_open(self, entry: File) -> bool:
        """Return True for a file with a block index that all users may read."""
        path, needed = entry.path, S_IROTH
        if not entry.digest or not block_index_path(self._repository, entry.digest).exists():
            return False
        try:
            while os.lstat(os.path.join(self.tree, path)).st_mode & needed:
                if not path:
                    return True
                path, needed = parent(path), S_IXOTH
        except OSError:
            pass
        return False

    def _open(self, path: RelPath) -> int:
        """Open a regular file of the tree; status 410 if it is gone, 403 or 500 if unreadable."""
        try:
            handle = open_regular(self.tree, path)
        except PermissionError:
            raise HttpError(403, "the server is not allowed to read this file") from None
        except OSError as error:
            _log.warning("%s: %s: %s", self._name, show(path), error.strerror)
            raise _unreadable_error("the file cannot be read") from None
        if handle is None:
            raise _changed_error()
        return handle

    def _as_committed(self, entry: File, handle: int) -> OpenFile:
        """Return the open file; raises 410 if it differs from `entry` and is not volatile."""
        status = os.fstat(handle)
        size, mtime = status.st_size, status.st_mtime_ns
        is_entry = (size, mtime) == (entry.size, entry.mtime)
        if not is_entry and not self._is_volatile(entry.path):
            raise _changed_error()
        digest = entry.digest.hex() if is_entry and entry.digest else None
        etag = digest or f"{size:x}-{mtime:x}-{status.st_ino:x}"
        beginning = os.pread(handle, size, 0) if size <= _SMALL_BYTES else b""
        label = f"{self._name}: {show(entry.path)}"
        file = OpenFile(handle, size, mtime, f'"{etag}"', label, beginning)
        file.check()
        return file


def _absent_error() -> HttpError:
    return HttpError(404, "the newest commit names no such file", hint="percent-encode its bytes")


def _changed_error() -> HttpError:
    hint = "fetch the next commit, which has the present state"
    return HttpError(410, "the file was changed or removed since the newest commit", hint=hint)


def _unreadable_error(message: str) -> HttpError:
    return HttpError(500, message, hint="see the server's log")
