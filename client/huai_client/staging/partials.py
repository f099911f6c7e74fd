"""Partials: beginnings of files that interrupted runs left, as bases of the next transfer.

Never trusted: rsync compares a basis block by block, and its output is verified.
They are in a flat folder under a hash of their path, so that a tree that changed its shape between
two runs (a file in the place of a directory) cannot block them.
"""

import os
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager, suppress

from huai_client.staging.journals import hashed
from huai_client.tree import handles
from huai_native import _native
from huai_schema.paths import basename, join, parent

_TEMPORARY = re.compile(rb"\.(.+)\.[A-Za-z0-9]{6}", re.DOTALL)
_CHUNK = 64 << 20


def intended_path(path: bytes, known_paths: Container[bytes]) -> bytes:
    """Return the path that a file left at `path` was intended for.

    A killed rsync leaves `.NAME.XXXXXX` next to NAME.
    """
    match = None if path in known_paths else _TEMPORARY.fullmatch(basename(path))
    return join(parent(path), match[1]) if match else path


class Partials:
    """The folder `partial` of the staging area: the beginnings of files, by a hash of the path."""

    def __init__(self, root: int) -> None:
        """Open the folder in the area's handle `root`, made if absent."""
        self._handle = handles.own_directory(root, b"partial")
        self._names = handles.own_files(self._handle)

    def keep(self, path: bytes, handle: int, name: bytes) -> None:
        """Move the regular file `name` in `handle` here, as the partial of `path`.

        An rsync that was interrupted early has copied less than its basis, whose end is worth
        keeping, so it is appended.
        """
        target = hashed(path)
        if target in self._names:
            with suppress(OSError):  # a full disk: the shorter one will do
                append_rest(handle, name, self._handle, target)
        os.utime(name, dir_fd=handle, follow_symlinks=False)
        os.rename(name, target, src_dir_fd=handle, dst_dir_fd=self._handle)
        self._names.add(target)

    def place(self, path: bytes, handle: int, name: bytes) -> os.stat_result | None:
        """Move the partial of `path` to `name` in `handle`; return its status, or None without."""
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
        """Yield a handle of the partial of `path`, to be read, or None."""
        name = hashed(path)
        if name not in self._names:
            yield None
            return
        with handles.opened_file(self._handle, name) as handle:
            yield handle

    def drop(self, path: bytes) -> None:
        """Drop the partial of `path`, if there is one."""
        name = hashed(path)
        if name in self._names:
            _native.remove_all(self._handle, name)
            self._names.discard(name)

    def prune(self, paths: Iterable[bytes]) -> None:
        """Drop all partials but those of `paths`."""
        for name in self._names - {hashed(path) for path in paths if self._names}:
            _native.remove_all(self._handle, name)
            self._names.discard(name)

    def __bool__(self) -> bool:
        """True if there is any partial."""
        return bool(self._names)

    def __contains__(self, path: bytes) -> bool:
        """Return True if there is a partial of `path`."""
        return hashed(path) in self._names

    def close(self) -> None:
        """Close the handle."""
        os.close(self._handle)


def append_rest(handle: int, name: bytes, other: int, longer: bytes) -> None:
    """Append to the file `name` in `handle` what `longer` in `other` has beyond its length."""
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
