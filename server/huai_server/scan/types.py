"""What a scan yields, its options and its errors.

Values only; `huai_server.scan.scan` makes them.
"""

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from huai_native._native import Run
from huai_schema.codec.listing import Listing
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import RelPath, show

IDENTITY = struct.Struct("<QQqqqIIIII4x")
"""One regular file: device, inode, size, mtime and ctime (ns), number of links, line's offset,
mode, uid, gid."""

# Reasons that have no errno; the native scanner knows them by number.
KEEPS_CHANGING = "keeps changing while it is read"
OUT_OF_RANGE = "its size or time is out of range"
TIME = "its time is out of range"
"""Of a directory, which is listed with the nearest time that the format can hold."""
CHANGED = "changed while it was read"
VOLATILE = "changed while it was read, as it may"
"""Of a file that the configuration calls volatile; this is no problem."""

# Why something is left out on purpose.
RESERVED = "the name is reserved for what rsync and huai stage"
TEMPORARY = "a temporary file of rsync, by its name and its mode"
LEFT_OUT = (RESERVED, TEMPORARY)


class Problem(NamedTuple):
    """A path, other than a directory, that could not be read."""

    path: RelPath
    reason: str
    outcome: str = ""
    """What was committed in its place; empty in the output of a scan."""


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
    """Whether a file here has more than one name, here or elsewhere."""
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
        """Whether this is more of the directory before it."""
        return not self.listing.attributes


Scanned: TypeAlias = Iterator[ScannedDirectory | Unreadable | Run]
"""A scan: directories about which nothing has to be decided come together, large ones in parts."""


class ScanOptions(NamedTuple):
    """How to scan."""

    one_file_system: bool = True
    """List a mount point as an empty directory, as `rsync -x` does."""
    owners: bool = True
    """Record owners and groups; otherwise everything belongs to root."""
    exclude: tuple[bytes, ...] = ()
    """Patterns of what is left out (`huai_server.scan.exclude`)."""
    threads: int = 8
    """Directories looked at at the same time, from 1; more than cores pay on a cold cache."""


class ScanError(HuaiError):
    """The tree cannot be scanned at all."""

    exit_code = ExitCode.FILE_IO


class RootMissingError(ScanError):
    """There is no directory at the root."""

    exit_code = ExitCode.EMPTY_ROOT


def root_error(root: os.PathLike[str], error: OSError) -> ScanError:
    """The error that says why `root` cannot be opened."""
    where = f"{show(os.fsencode(root))}: {error.strerror}"
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return RootMissingError(
            f"no tree to scan at {where}",
            hint="check the path of the module, and that its file system is mounted",
        )
    return ScanError(
        f"cannot read the tree at {where}",
        hint="let the user that runs this command read it, or run it as another one",
    )


def owner_error(error: OSError) -> ScanError:
    """The error for an owner whose name could not be looked up."""
    return ScanError(
        f"the name of an owner or a group cannot be looked up: {error.strerror}",
        hint="see that what passwd and group of /etc/nsswitch.conf name answers;"
        " with owners = false none are recorded",
    )
