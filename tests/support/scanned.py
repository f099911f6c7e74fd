"""A whole tree as the engine scans it, directory by directory, for tests to compare."""

import struct
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from huai_schema.codec.listing import Listing
from huai_schema.paths import RelPath, join
from huai_server.scan.native import Directory, reason_of, scan_directories
from huai_server.scan.types import LEFT_OUT, Problem, ScanOptions

IDENTITY = struct.Struct("<QQqqqIIIII4x")
"""One regular file: device, inode, size, mtime and ctime (ns), number of links, line's offset,
mode, uid, gid."""


class Unreadable(NamedTuple):
    """A directory that could not be read; it stands for all below it, too."""

    path: RelPath
    reason: str


class ScannedDirectory(NamedTuple):
    """One directory as it was seen, or a part of a large one."""

    listing: Listing
    """Without digests."""
    identities: bytes
    """One `IDENTITY` record for each regular file of the listing, in its order."""
    hardlinks: bool
    """True if a file of the listing has more than one name, in this directory or another."""
    skipped: int
    """How many devices, sockets, fifos and over-long paths are in it: no snapshot can hold them.

    The first part says it of all."""
    problems: tuple[Problem, ...] = ()
    """Paths in it that could not be read; its own path if its time is out of range."""
    left_out: tuple[Problem, ...] = ()
    """Temporary files and reserved names in it; what a pattern excludes is not listed."""
    unreadable: int = 0
    """Files of the listing that others may not read."""
    device: int = 0
    """The kernel's number of its file system."""
    inode: int = 0
    file_system: int = 0
    """Another number, which stays when the file system is mounted again; 0: nothing proves it."""

    @property
    def goes_on(self) -> bool:
        """True if this continues the directory before it."""
        return not self.listing.attributes


def scan(
    root: Path, options: ScanOptions | None = None, *, links: bool = False
) -> Iterator[ScannedDirectory | Unreadable]:
    """Every directory below `root` in tree order, the first one being `root` itself (path "").

    A subdirectory that cannot be read is `Unreadable`; one that vanished meanwhile is absent.
    """
    begun: list[ScannedDirectory] = []
    for frame in scan_directories(root, options or ScanOptions(), links=links):
        if len(frame) != 2 and not frame[1]:
            begun.append(_directory(frame))
            continue
        if begun:
            yield _join_parts(begun)
        begun = []
        if len(frame) == 2:
            yield Unreadable(RelPath(frame[0]), reason_of(frame[1]))
        else:
            begun = [_directory(frame)]
    if begun:
        yield _join_parts(begun)


def _join_parts(parts: list[ScannedDirectory]) -> ScannedDirectory:
    """Join the parts of a directory."""
    first = parts[0]
    if len(parts) == 1:
        return first
    identities: list[bytes] = []
    before = 0
    for part in parts:
        identities += (
            IDENTITY.pack(*record[:6], record[6] + before, *record[7:])
            for record in IDENTITY.iter_unpack(part.identities)
        )
        before += len(part.listing.leaves)
    return first._replace(
        listing=first.listing._replace(leaves=b"".join(part.listing.leaves for part in parts)),
        identities=b"".join(identities),
        hardlinks=any(part.hardlinks for part in parts),
        problems=tuple(chain.from_iterable(part.problems for part in parts)),
        left_out=tuple(chain.from_iterable(part.left_out for part in parts)),
        unreadable=sum(part.unreadable for part in parts),
    )


def _directory(frame: Directory) -> ScannedDirectory:
    name, attributes, leaves, identities, hardlinks, skipped, noticed, *numbers = frame
    unreadable, device, inode, file_system = numbers
    path = RelPath(name)
    return ScannedDirectory(
        Listing(path, attributes, leaves),
        identities,
        hardlinks,
        skipped,
        *_sorted(path, noticed) if noticed else ((), ()),
        unreadable,
        device,
        inode,
        file_system,
    )


def _sorted(
    directory: RelPath, noticed: list[tuple[bytes, int]]
) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Tell problems from what is left out."""
    everything = [
        Problem(join(directory, name) if name else directory, reason_of(reason))
        for name, reason in noticed
    ]
    problems = tuple(each for each in everything if each.reason not in LEFT_OUT)
    return problems, tuple(each for each in everything if each.reason in LEFT_OUT)
