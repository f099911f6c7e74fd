"""The reasons, options and errors of a scan; values only.

Rule: `_REASONS` must match `_native.pyi`.
"""

import errno
import os
from typing import NamedTuple

from huai_program.engine.signs import TaskError
from huai_schema.errors import ExitCode
from huai_schema.paths import RelPath, show
from huai_server.scan.mounts import MOUNTED_OVER, NOT_ENTERED, NOT_MOUNTED

# Reasons without an errno, for which the native scanner has numbers.
KEEPS_CHANGING = "keeps changing while it is read"
OUT_OF_RANGE = "its size or time is out of range"
TIME = "its time is out of range"
"""The reason for a directory, which is listed with the nearest time that the format can hold."""
CHANGED = "changed while it was read"
DAMAGED = "its content is damaged, as a scrub found"
NO_RESULT = "its shard was not scanned: its processes failed, or no worker has its label"
OTHER_VIEW = "the machine that scanned its shard has another directory there"

# Reasons for leaving a path out on purpose.
RESERVED = "the name is reserved for staging by rsync and huai"
TEMPORARY = "a temporary file of rsync, by its name and its mode"

_REASONS = {
    -1: KEEPS_CHANGING,
    -2: OUT_OF_RANGE,
    -3: TIME,
    -4: RESERVED,
    -5: TEMPORARY,
    -6: CHANGED,
    -7: DAMAGED,
    -8: NOT_ENTERED,
    -9: MOUNTED_OVER,
    -10: NOT_MOUNTED,
    -11: NO_RESULT,
    -12: OTHER_VIEW,
}


def reason_of(number: int) -> str:
    """Return the words for a reason of the engine: an errno, or a negative number of its own."""
    return os.strerror(number) if number > 0 else _REASONS[number]


class Problem(NamedTuple):
    """A path that could not be read; not a directory."""

    path: RelPath
    reason: str
    outcome: str = ""
    """The action that the commit took."""


class ScanOptions(NamedTuple):
    """The options of a scan."""

    one_file_system: bool = True
    """List a mount point as an empty directory, as `rsync -x` does."""
    owners: bool = True
    """Record owners and groups; otherwise list all entries as root's."""
    exclude: tuple[bytes, ...] = ()
    threads: int = 8
    """Directories to read concurrently, from 1; on a cold cache more than the cores pay off."""


class ScanError(TaskError):
    """The tree cannot be scanned at all."""

    exit_code = ExitCode.FILE_IO


class RootMissingError(ScanError):
    """The root is missing or not a directory."""

    exit_code = ExitCode.EMPTY_ROOT


def root_error(root: os.PathLike[str], error: OSError) -> ScanError:
    """Return the error for a `root` that cannot be opened.

    It is a `RootMissingError` if `root` is missing or not a directory.
    """
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return RootMissingError(
            f"no tree to scan at {show(os.fsencode(root))}: {error.strerror}",
            hint="check the path of the module, and that its file system is mounted",
        )
    return unreadable_root_error(root, error.strerror)


def unreadable_root_error(root: os.PathLike[str], reason: str | None) -> ScanError:
    """Return the error for a root of which nothing can be listed."""
    return ScanError(
        f"cannot read the tree at {show(os.fsencode(root))}: {reason}",
        hint="let the user that runs this command read it, or run it as another one",
    )


def exhausted_error(error: MemoryError | OSError) -> ScanError:
    """Return the error for a scan that memory or open files were not enough for."""
    reason = os.strerror(errno.ENOMEM) if isinstance(error, MemoryError) else error.strerror
    return ScanError(
        f"the scan ran out of memory or of open files ({reason})",
        hint="raise the limits of the process, or use fewer threads",
    )
