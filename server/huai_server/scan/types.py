"""What a scan yields, how it is told what to do, and why it cannot be done.

Values only; `huai_server.scan.scan` makes them.
"""

import os
import struct
from dataclasses import dataclass
from typing import NamedTuple

from huai_schema.codec.listing import Listing
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import RelPath, show

IDENTITY = struct.Struct("<QQqqqIIIII4x")
"""One regular file: device, inode, size, mtime and ctime (ns), number of links, line's offset,
mode, uid, gid."""

# Reasons that have no errno; the native scanner knows them by number (c/scanner.h).
KEEPS_CHANGING = "keeps changing while it is read"
OUT_OF_RANGE = "its size or time is out of range"
TOO_LARGE = "holds more than one listing can carry"
TIME = "its time is out of range"
"""Of a directory: it is listed with the nearest time that fits."""
CHANGED = "changed while it was read"
VOLATILE = "changed while it was read, as it may"
"""A file that the configuration calls volatile: no problem at all."""

# Why something is left out on purpose.
RESERVED = "the name is reserved for what rsync and huai stage"
TEMPORARY = "a temporary file of rsync, by its name and its mode"
LEFT_OUT = (RESERVED, TEMPORARY)

READINGS = 4
"""How often a directory that changes meanwhile is read before it is given up."""


class Problem(NamedTuple):
    """A file, symlink or special file that is there and could not be looked at."""

    path: RelPath
    reason: str
    outcome: str = ""
    """What was committed in its place; a scan does not know."""


class Unreadable(NamedTuple):
    """Stands in the place of a directory, and of all below it, that could not be read."""

    path: RelPath
    reason: str


class ScannedDirectory(NamedTuple):
    """One directory as it was seen."""

    listing: Listing
    """Without digests."""
    identities: bytes
    """One `IDENTITY` record for each regular file of the listing, in its order."""
    hardlinks: bool
    """Some file here has more than one name, perhaps elsewhere."""
    skipped: int
    """Devices, sockets, fifos and over-long paths right here, which no snapshot holds."""
    problems: tuple[Problem, ...] = ()
    """The directory's own path stands for its time."""
    left_out: tuple[Problem, ...] = ()
    """What no snapshot holds on purpose; what a pattern excludes is not among it."""
    unreadable: int = 0
    """Files of the listing that others may not read."""
    device: int = 0
    inode: int = 0


@dataclass(frozen=True, slots=True)
class ScanOptions:
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
            hint="check the module's path, and that its file system is mounted",
        )
    return ScanError(
        f"cannot read the tree at {where}",
        hint="let the user that runs this command read it, or run it as another one",
    )


def owner_error(error: OSError) -> ScanError:
    """The error for an owner whose name nobody could be asked for."""
    return ScanError(
        f"the name of an owner or a group cannot be looked up: {error.strerror}",
        hint="see that what passwd and group of /etc/nsswitch.conf name answers;"
        " with owners = false none are recorded",
    )
