"""The scanner and its oracle by name, and ways to run them under other conditions."""

import ctypes
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias, TypeVar

from huai_schema.codec.lines import decode_leaves
from huai_schema.entries import File, Symlink
from huai_server.scan.types import ScanOptions
from tests.support import scan_oracle
from tests.support.scanned import ScannedDirectory, Unreadable, scan
from tests.support.unprivileged import in_child

Found: TypeAlias = list[ScannedDirectory | Unreadable]
Result = TypeVar("Result")

_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_ENOSYS = 38
OPEN_TREE, OPENAT2, CREATE_RULESET = 428, 437, 444
"""System calls that older kernels lack; the last is Landlock's first."""


def scan_native(root: Path, options: ScanOptions) -> Found:
    return comparable(scan(root, options))


def comparable(results: Iterable[ScannedDirectory | Unreadable]) -> Found:
    """Return `found` without the numbers of file systems, which the oracle does not know."""
    return [
        each._replace(file_system=0) if isinstance(each, ScannedDirectory) else each
        for each in results
    ]


def scan_python(root: Path, options: ScanOptions) -> Found:
    return list(scan_oracle.scan(root, options))


def directories(results: Found) -> dict[bytes, ScannedDirectory]:
    """Return the directories that could be read, by path."""
    return {each.listing.path: each for each in results if isinstance(each, ScannedDirectory)}


def unreadable(results: Found) -> dict[bytes, str]:
    """Return the reasons for the entries that could not be read, by path."""
    return {each.path: each.reason for each in results if isinstance(each, Unreadable)}


def leaves(results: Found) -> dict[bytes, File | Symlink]:
    """Return every file and symlink, by path."""
    return {
        leaf.path: leaf
        for each in directories(results).values()
        for leaf in decode_leaves(each.listing.path, each.listing.leaves)
    }


def without_call(number: int, work: Callable[[], Result]) -> Result:
    """Return what `work` returns in a process whose kernel seems to lack a system call."""

    def restricted() -> Result:
        filters = struct.pack(
            "HBBIHBBIHBBIHBBI",
            *(0x20, 0, 0, 0),  # load the number of the system call
            *(0x15, 0, 1, number),  # if it is the one
            *(0x06, 0, 0, 0x0005_0000 | _ENOSYS),  # answer ENOSYS
            *(0x06, 0, 0, 0x7FFF_0000),  # else allow it
        )
        program = struct.pack("HxxxxxxP", 4, ctypes.addressof(memory := _memory(filters)))
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
        assert libc.prctl(_SECCOMP, _FILTER, program) == 0
        assert libc.syscall(number, -1, None, None, 0) == -1
        assert ctypes.get_errno() == _ENOSYS
        del memory
        return work()

    return in_child(restricted)


def _memory(content: bytes) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(content, len(content))
