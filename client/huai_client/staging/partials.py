"""What interrupted runs left: beginnings of files, kept as the basis of the next transfer.

Never trusted: rsync compares a basis block by block, and what comes out is verified.
They lie flat under a hash of their path, so that a tree that changed its shape between
two runs (a file where a directory was) finds nothing in its way.
"""

import os
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager, suppress

from huai_client.staging.names import hashed
from huai_client.tree import handles
from huai_native import _native
from huai_schema.paths import basename, join, parent

_TEMPORARY = re.compile(rb"\.(.+)\.[A-Za-z0-9]{6}", re.DOTALL)
_CHUNK = 64 << 20


def intended_path(path: bytes, wanted: Container[bytes]) -> bytes:
    """The path that a left-over file at `path` was to become.

    A killed rsync leaves `.NAME.XXXXXX` beside where NAME was to stand.
    """
    match = None if path in wanted else _TEMPORARY.fullmatch(basename(path))
    return join(parent(path), match[1]) if match else path


class Partials:
    """The folder `partial` below the staging area's handle."""

    def __init__(self, root: int) -> None:
        """Opens the folder, made if absent."""
        self._handle = handles.own_directory(root, b"partial")
        self._names = handles.own_files(self._handle)

    def keep(self, path: bytes, handle: int, name: bytes) -> None:
        """Take the regular file `name` in `handle` as a beginning of `path`.

        An rsync that was interrupted early has copied less than the basis it worked from;
        what that basis holds beyond is worth keeping, so it is appended.
        """
        target = hashed(path)
        if target in self._names:
            with suppress(OSError):  # a full disk: the shorter one will do
                append_rest(handle, name, self._handle, target)
        os.utime(name, dir_fd=handle, follow_symlinks=False)
        os.rename(name, target, src_dir_fd=handle, dst_dir_fd=self._handle)
        self._names.add(target)

    def place(self, path: bytes, handle: int, name: bytes) -> os.stat_result | None:
        """Move what is kept for `path` to `name` in `handle`; None: nothing is."""
        source = hashed(path)
        if source not in self._names:
            return None
        self._names.discard(source)
        try:
            os.rename(source, name, src_dir_fd=self._handle, dst_dir_fd=handle)
        except FileNotFoundError:
            return None
        return os.stat(name, dir_fd=handle, follow_symlinks=False)

    @contextmanager
    def opened(self, path: bytes) -> Iterator[int | None]:
        """A handle of what is kept for `path`, to be read; None: nothing is."""
        name = hashed(path)
        if name not in self._names:
            yield None
            return
        with handles.opened_file(self._handle, name) as handle:
            yield handle

    def drop(self, path: bytes) -> None:
        """Drop what is kept for `path`."""
        name = hashed(path)
        if name in self._names:
            _native.remove_all(self._handle, name)
            self._names.discard(name)

    def prune(self, wanted: Iterable[bytes]) -> None:
        """Drop what is kept for any path that is not `wanted`."""
        for name in self._names - {hashed(path) for path in wanted if self._names}:
            _native.remove_all(self._handle, name)
            self._names.discard(name)

    def __bool__(self) -> bool:
        """Whether anything is kept at all."""
        return bool(self._names)

    def __contains__(self, path: bytes) -> bool:
        """Whether anything is kept for `path`."""
        return hashed(path) in self._names

    def close(self) -> None:
        """Give the handle back."""
        os.close(self._handle)


def append_rest(handle: int, name: bytes, other: int, longer: bytes) -> None:
    """Append to `name` in `handle` what `longer` in `other` holds beyond its length."""
    with (
        handles.opened_file(other, longer) as source,
        handles.opened_file(handle, name, os.O_WRONLY) as target,
    ):
        size, position = os.fstat(source).st_size, os.fstat(target).st_size
        while position < size:
            count = os.copy_file_range(source, target, _CHUNK, position, position)
            if not count:
                break
            position += count
