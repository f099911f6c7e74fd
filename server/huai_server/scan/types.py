"""What a scan says of paths, its options and its errors.  Values only."""

import os
from pathlib import Path
from typing import NamedTuple

from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import RelPath, show

# Reasons that have no errno; the native scanner knows them by number.
KEEPS_CHANGING = "keeps changing while it is read"
OUT_OF_RANGE = "its size or time is out of range"
TIME = "its time is out of range"
"""Of a directory, which is listed with the nearest time that the format can hold."""
CHANGED = "changed while it was read"
DAMAGED = "its content is damaged, as a scrub found"

# Why something is left out on purpose.
RESERVED = "the name is reserved for what rsync and huai stage"
TEMPORARY = "a temporary file of rsync, by its name and its mode"
LEFT_OUT = (RESERVED, TEMPORARY)


class Problem(NamedTuple):
    """A path, other than a directory, that could not be read."""

    path: RelPath
    reason: str
    outcome: str = ""
    """What was committed in its place."""


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


def unreadable_root(root: Path, reason: str) -> ScanError:
    """The error for a root of which nothing can be listed."""
    return ScanError(
        f"cannot read the tree at {show(bytes(root))}: {reason}",
        hint="let the user that runs this command read it, or run it as another one",
    )


def owner_error(error: OSError) -> ScanError:
    """The error for an owner whose name could not be looked up."""
    return ScanError(
        f"the name of an owner or a group cannot be looked up: {error.strerror}",
        hint="see that what passwd and group of /etc/nsswitch.conf name answers;"
        " with owners = false none are recorded",
    )
