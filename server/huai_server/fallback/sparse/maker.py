"""The engine's maker of sparse files, and the removal of whole attr trees."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Self, TypeAlias

from huai_native import _native
from huai_schema.codec.listing import Listing
from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import RelPath
from huai_server.fallback.owners import OwnerIds

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OwnerIds: TypeAlias = Callable[[bytes, bytes], tuple[int, int]]
_Attributes: TypeAlias = tuple[int, int, tuple[int, int] | None]
"""The mtime in nanoseconds, the mode, and the ids of user and group unless these are kept."""


class Maker:
    """A context manager that makes entries below one directory; each method raises `OSError`."""

    def __init__(self, root: Path, owners: OwnerIds | None, building: Path | None = None) -> None:
        """Create entries below `root`: in the folder `building`, then renamed, or else in place.

        `owners` has their ids; None leaves them the owner of this process.
        """
        self._root = root
        self._ids: _OwnerIds | None = None
        if owners is not None:
            self._ids = cache(lambda user, group: (owners.uid(user), owners.gid(group)))
        folder = None if building is None else os.fsencode(building)
        with self._whole_paths():
            self._native = _native.Maker(os.fsencode(root), folder, privileged=os.geteuid() == 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Restore the times of the last changed directory."""
        with suppress(*(() if kind is None else (OSError,))), self._whole_paths():
            self._native.leave()

    @property
    def unowned(self) -> int:
        """The number of entries whose owner could not be set."""
        return self._native.unowned

    def make_leaf(self, leaf: File | Symlink) -> None:
        """Create a sparse file, a hardlink or a symlink, with its attributes."""
        with self._whole_paths():
            if isinstance(leaf, Symlink):
                self._native.make_symlink(leaf.path, self._attributes(leaf), leaf.target)
            elif leaf.link is None:
                self._native.make_file(leaf.path, self._attributes(leaf), leaf.size)
            else:
                self._native.make_link(leaf.path, leaf.link)

    def make_leaves(self, listing: Listing) -> None:
        """Create all files and symlinks of a directory from their lines."""
        with self._whole_paths():
            self._native.make_leaves(listing.path, listing.leaves, self._ids)

    def make_directory(self, directory: Directory) -> None:
        """Create an empty directory."""
        with self._whole_paths():
            self._native.make_directory(directory.path, self._attributes(directory))

    def set_attributes(self, directory: Directory) -> None:
        """Set the attributes of a directory that exists."""
        with self._whole_paths():
            self._native.set_attributes(directory.path, self._attributes(directory))

    def move(self, old: RelPath, new: RelPath) -> None:
        """Rename a directory with all below it."""
        with self._whole_paths():
            self._native.rename_directory(old, new)

    def remove(self, path: RelPath) -> None:
        """Remove a name, with all below it."""
        with self._whole_paths():
            self._native.remove(path)

    def _attributes(self, entry: File | Symlink | Directory) -> _Attributes:
        ids = self._ids(entry.owner, entry.group) if self._ids else None
        return entry.mtime, entry.mode, ids

    @contextmanager
    def _whole_paths(self) -> Iterator[None]:
        """Let an `OSError` name the whole path at which it stopped."""
        try:
            yield
        except OSError as error:
            path = self._root / os.fsdecode(error.filename or b"")
            raise OSError(error.errno, error.strerror, str(path)) from None


def delete_tree(top: Path) -> None:
    """Delete the folder `top` with all below it, if it exists."""
    handle = os.open(top.parent, _DIRECTORY)
    try:
        _native.remove_all(handle, os.fsencode(top.name))
    finally:
        os.close(handle)
