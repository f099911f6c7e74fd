"""Landlock: the kernel limits the paths that a process may use (landlock(7), Linux 5.13).

Processes inherit the restriction of the thread that starts them, so `run_in` needs no code between
fork and exec.  Rule: on a kernel without Landlock everything runs unrestricted.
"""

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple, TypeVar

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""System calls: the same numbers on all machines except Alpha."""
_GET_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_ALL = (1 << 16) - 1
"""The rights over files in version 5 of the interface."""

T = TypeVar("T")


class Domain(NamedTuple):
    """The paths that may be used, with all below them; missing ones are ignored."""

    read: Sequence[bytes]
    """Paths to read, and to execute."""
    write: Sequence[bytes | int]
    """Paths to read and change as well; a number is the handle of a directory."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


@cache
def version() -> int:
    """Return the version of the kernel's interface; 0 if it is missing or disabled."""
    result: int = _libc().syscall(_CREATE_RULESET, None, 0, _GET_VERSION)
    return max(0, result)


def run_in(domain: Domain | None, start: Callable[[], T]) -> T:
    """Call `start` in a thread restricted to `domain`, if the kernel can; return its result."""
    if domain is None or not version():
        return start()
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            _restrict(domain)
            results.append(start())
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits
            errors.append(error)

    thread = threading.Thread(target=work, name="huai-confined")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _restrict(domain: Domain) -> None:
    """Restrict this thread, irrevocably."""
    handled = _RIGHTS.get(version(), _ALL)
    attributes = _Ruleset(handled)
    ruleset = _call(
        _CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(ctypes.sizeof(attributes)), 0
    )
    try:
        for path in domain.read:
            _allow(ruleset, path, _READ & handled)
        for place in domain.write:
            _allow(ruleset, place, handled)
        if _libc().prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, place: bytes | int, rights: int) -> None:
    try:
        handle = os.dup(place) if isinstance(place, int) else os.open(place, os.O_PATH)
    except OSError:
        return
    try:
        if not _is_directory(handle):
            rights &= _OF_FILES
        rule = _PathBeneath(rights, handle)
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(handle)


def _is_directory(handle: int) -> bool:
    return os.fstat(handle).st_mode & 0o170000 == 0o040000


def _call(number: int, *arguments: object) -> int:
    result: int = _libc().syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
