"""The scanner and its oracle by name, and ways to run them under other conditions."""

import ctypes
import os
import pickle
import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias, TypeVar

from huai_schema.codec.lines import decode_leaves
from huai_schema.entries import File, Symlink
from huai_server.scan import native
from huai_server.scan.types import ScannedDirectory, ScanOptions, Unreadable
from tests.support import scan_oracle

Found: TypeAlias = list[ScannedDirectory | Unreadable]
Scanner: TypeAlias = Callable[[Path, ScanOptions], Found]
Result = TypeVar("Result")

NOBODY = 65_534
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_ENOSYS, _OPENAT2 = 38, 437


def scan_native(root: Path, options: ScanOptions) -> Found:
    return list(native.scan(root, options))


def scan_python(root: Path, options: ScanOptions) -> Found:
    return list(scan_oracle.scan(root, options))


SCANNERS: dict[str, Scanner] = {"native": scan_native, "python": scan_python}


def directories(found: Found) -> dict[bytes, ScannedDirectory]:
    """What could be read, by path."""
    return {each.listing.path: each for each in found if isinstance(each, ScannedDirectory)}


def unreadable(found: Found) -> dict[bytes, str]:
    """The reasons for what could not, by path."""
    return {each.path: each.reason for each in found if isinstance(each, Unreadable)}


def leaves(found: Found) -> dict[bytes, File | Symlink]:
    """Every file and symlink, by path."""
    return {
        leaf.path: leaf
        for each in directories(found).values()
        for leaf in decode_leaves(each.listing.path, each.listing.leaves)
    }


def as_nobody(work: Callable[[], Result]) -> Result:
    """What `work` returns in a process without privileges; its arguments must be loaded already."""

    def unprivileged() -> Result:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return work()

    return in_child(unprivileged)


def without_openat2(work: Callable[[], Result]) -> Result:
    """What `work` returns in a process whose kernel seems to be too old for openat2."""

    def restricted() -> Result:
        filters = struct.pack(
            "HBBIHBBIHBBIHBBI",
            *(0x20, 0, 0, 0),  # load the number of the system call
            *(0x15, 0, 1, _OPENAT2),  # if it is openat2
            *(0x06, 0, 0, 0x0005_0000 | _ENOSYS),  # answer ENOSYS
            *(0x06, 0, 0, 0x7FFF_0000),  # else allow it
        )
        program = struct.pack("HxxxxxxP", 4, ctypes.addressof(memory := _memory(filters)))
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
        assert libc.prctl(_SECCOMP, _FILTER, program) == 0
        assert libc.syscall(_OPENAT2, -1, None, None, 0) == -1
        assert ctypes.get_errno() == _ENOSYS
        del memory
        return work()

    return in_child(restricted)


def in_child(work: Callable[[], Result]) -> Result:
    """What `work` returns in a child process, or what it raises."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child calls nothing that locks
        child = os.fork()
    if child == 0:
        answer: tuple[bool, object]
        try:
            answer = True, work()
        except BaseException as error:  # noqa: BLE001 (goes to the parent, whatever it is)
            answer = False, repr(error)
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        raw = pipe.read()
    os.waitpid(child, 0)
    good, result = pickle.loads(raw)  # noqa: S301 (our own child wrote it)
    assert good, result
    returned: Result = result
    return returned


def _memory(content: bytes) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(content, len(content))
