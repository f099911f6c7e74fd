"""Images of small trees, and what the kernel makes of them."""

import ctypes
import os
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from huai_schema.entries import File, Symlink
from huai_schema.paths import RelPath, join
from huai_server.fallback.erofs.image import write_image
from huai_server.fallback.erofs.mounting import mount, unmount
from huai_server.fallback.owners import OwnerIds
from tests.support.schema.trees import Tree, snapshot

_NAME_OFFSET = 19
"""The offset of d_name in struct dirent."""

_NO_ID = (1 << 32) - 1
"""The id of no owner at all: the kernel lets no user read such a file."""


class Facts(NamedTuple):
    """The facts of a listing of one path."""

    mode: int
    uid: int
    gid: int
    mtime: int
    size: int | None
    """None for a directory."""
    target: bytes | None
    first: bytes | None
    """The first path of a regular file's hardlink group."""


class Numbered(OwnerIds):
    """Gives every owner a number of its own, many of them above 65535."""

    def _uid(self, name: bytes) -> int:
        return int.from_bytes(name[-4:].ljust(4, b"u")) % _NO_ID

    def _gid(self, name: bytes) -> int:
        return int.from_bytes(name[-4:].ljust(4, b"g")) % _NO_ID


OWNERS = Numbered()


def make_image(tree: Tree, image: Path) -> None:
    snap = snapshot(tree)
    write_image(snap.listings, snap.tree, image, OWNERS)


@contextmanager
def mounted(tree: Tree, folder: Path) -> Iterator[bytes]:
    """The mount point, with a slash, of an image of `tree` that stands in `folder`."""
    image, point = folder / "image", folder / "point"
    point.mkdir(exist_ok=True)
    make_image(tree, image)
    mount(image, point)
    try:
        yield os.fsencode(point) + b"/"
    finally:
        unmount(point)


def expected_listing(tree: Tree) -> dict[RelPath, Facts]:
    """Return the listing that a mounted image of a tree must have."""
    listing = {}
    for path, entry in tree.items():
        owners = OWNERS.uid(entry.owner), OWNERS.gid(entry.group)
        common = *owners, entry.mtime
        if isinstance(entry, File):
            mode = stat.S_IFREG | entry.mode
            listing[path] = Facts(mode, *common, entry.size, None, entry.link or path)
        elif isinstance(entry, Symlink):
            mode = stat.S_IFLNK | entry.mode
            listing[path] = Facts(mode, *common, len(entry.target), entry.target, None)
        else:
            listing[path] = Facts(stat.S_IFDIR | entry.mode, *common, None, None, None)
    return listing


def read_listing(top: bytes) -> dict[RelPath, Facts]:
    """Return the listing of all entries below `top`, which ends in a slash."""
    listing = {}
    firsts: dict[int, RelPath] = {}
    counts: Counter[int] = Counter()
    links: dict[int, int] = {}
    for path in _walk(top):
        status = os.lstat(top + path)
        is_link = stat.S_ISLNK(status.st_mode)
        target = os.readlink(top + path) if is_link else None
        size = None if stat.S_ISDIR(status.st_mode) else status.st_size
        first = None
        if stat.S_ISREG(status.st_mode):
            # In tree order the first path of a group comes first.
            first = firsts.setdefault(status.st_ino, path)
            counts[status.st_ino] += 1
            links[status.st_ino] = status.st_nlink
        owners = status.st_uid, status.st_gid
        listing[path] = Facts(status.st_mode, *owners, status.st_mtime_ns, size, target, first)
    assert counts == links
    return listing


def dots(folder: bytes) -> dict[bytes, int]:
    """The inode numbers that a directory's own entries `.` and `..` carry."""
    library = ctypes.CDLL(None, use_errno=True)
    library.opendir.restype = library.readdir.restype = ctypes.c_void_p
    library.readdir.argtypes = library.closedir.argtypes = [ctypes.c_void_p]
    stream = library.opendir(folder)
    assert stream, os.strerror(ctypes.get_errno())
    numbers = {}
    try:
        while entry := library.readdir(stream):
            name = ctypes.string_at(entry + _NAME_OFFSET)
            if name in (b".", b".."):
                numbers[name] = ctypes.c_uint64.from_address(entry).value
    finally:
        library.closedir(stream)
    return numbers


def _walk(top: bytes) -> Iterator[RelPath]:
    """In tree order: a directory, its leaves, then its subdirectories."""
    pending = [b""]
    while pending:
        path = pending.pop()
        yield RelPath(path)
        with os.scandir(top + path) as entries:
            inside = sorted(entries, key=lambda entry: entry.name)
        folders = [entry for entry in inside if entry.is_dir(follow_symlinks=False)]
        pending += [join(path, entry.name) for entry in reversed(folders)]
        for entry in inside:
            if not entry.is_dir(follow_symlinks=False):
                yield join(path, entry.name)
