"""An expected error for a failed system call on the server's files.

Rule: an `OSError` never leaves a use case of the server; `storage_errors` converts it.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huai_program.disk_hints import DISK_HINTS
from huai_schema.errors import ExitCode, HuaiError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM)


class StorageError(HuaiError):
    """Local files could not be read or written; the commits made before are intact."""

    exit_code = ExitCode.FILE_IO


class UsageError(HuaiError):
    """A command does not apply to a module or to its arguments."""

    exit_code = ExitCode.USAGE


class RequirementError(HuaiError):
    """A library is missing, or another version of huai is needed."""

    exit_code = ExitCode.REQUIREMENT


@contextmanager
def storage_errors(place: Path) -> Iterator[None]:
    """Convert an `OSError` in the block to a `StorageError` that names its file, or `place`."""
    try:
        yield
    except OSError as error:
        raise storage_error(place, error) from error


def storage_error(place: Path, error: OSError) -> StorageError:
    """Return the error for `place`, with a hint for the errno."""
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else place
    return StorageError(f"{where}: {error.strerror or error}", hint=_hint(place, error.errno))


def _hint(place: Path, error_number: int | None) -> str:
    """Return what to do after an error at `place`, by its errno."""
    if error_number in _FULL:
        return f"make room on the file system of {place}; the last commit is intact"
    if error_number in _DENIED:
        return f"run it as the user that owns {place}"
    if hint := DISK_HINTS.get(error_number or 0):
        return f"{hint}; the last commit is intact"
    return "the last commit is intact; try again once the cause is removed"
