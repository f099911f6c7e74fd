"""The paths that rsync may use with a daemon: few, as the upstream is not trusted.

By Landlock (landlock(7), Linux 5.13): processes inherit the restriction of the thread that starts
them, so `run_in` needs no code between fork and exec.  Rule: on a kernel without Landlock
everything runs unrestricted.

rsync may read DEST (its delta basis), its program and libraries, the files for resolving a host,
and the paths in `rsync_options`.  It may write to the folder that it receives into.  A run through
a remote shell is not confined: ssh needs keys, agents and helpers of its own.
"""

import ctypes
import os
import shutil
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple, TypeVar

from huai_client.transfer.urls import ContentUrl, Transport
from huai_client.tree.handles import closing

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
    """Call `start` in a thread restricted to `domain`; return its result.

    Calls it unrestricted without a `domain`, or if the kernel has no Landlock.
    """
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
    """Restrict this thread, irrevocably; raises `OSError` if the kernel refuses."""
    handled = _RIGHTS.get(version(), _ALL)
    attributes = _Ruleset(handled)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    with closing(_call(_CREATE_RULESET, ctypes.byref(attributes), size, 0)) as ruleset:
        for path in domain.read:
            _allow(ruleset, path, _READ & handled)
        for target in domain.write:
            _allow(ruleset, target, handled)
        if _libc().prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
        _call(_RESTRICT_SELF, ruleset, 0)


def _allow(ruleset: int, path: bytes | int, rights: int) -> None:
    """Allow rights below a path or handle; a missing path is ignored."""
    try:
        opened = os.dup(path) if isinstance(path, int) else os.open(path, os.O_PATH)
    except OSError:
        return
    with closing(opened) as handle:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            rights &= _OF_FILES
        rule = _PathBeneath(rights, handle)
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)


def _call(number: int, *arguments: object) -> int:
    """Make a system call; raises `OSError` if it fails."""
    result: int = _libc().syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


_PROGRAMS = (
    b"/usr",
    b"/bin",
    b"/sbin",
    b"/lib",
    b"/lib32",
    b"/lib64",
    b"/nix/store",
    b"/gnu/store",
)
_SETTINGS = (
    *(b"ld.so.cache", b"ld.so.preload", b"ld.so.conf", b"ld.so.conf.d", b"localtime", b"popt"),
    *(b"resolv.conf", b"hosts", b"host.conf", b"nsswitch.conf", b"gai.conf", b"services"),
    *(b"protocols", b"passwd", b"group", b"ssl/openssl.cnf", b"pki/tls/openssl.cnf"),
    *(b"alternatives", b"crypto-policies"),
)
"""Files below /etc, none of them secret."""
_DEVICES = (b"/dev/null", b"/dev/zero", b"/dev/random", b"/dev/urandom", b"/dev/tty")
_SHELLS = ("-e", "--rsh")
_WRITTEN = ("--log-file=", "--temp-dir=", "--partial-dir=")


def domain(
    url: ContentUrl, program: str, extra: Sequence[str], dest: bytes, folder: int
) -> Domain | None:
    """Return the paths that rsync may use to receive into the handle `folder`; None for all.

    `extra` are the administrator's options: the paths in them are permitted.  `dest` is the path of
    the tree to read, or empty.
    """
    if url.transport is not Transport.DAEMON or _uses_shell(extra):
        return None
    path = os.path.realpath(shutil.which(program) or program)
    own = (os.fsencode(path), os.fsencode(os.path.dirname(path)), os.fsencode(sys.prefix))
    settings = (b"/etc/" + name for name in _SETTINGS)
    values = (each.partition("=")[2] or each for each in extra)
    permitted = (os.fsencode(value) for value in values if value.startswith("/"))
    read = (*_PROGRAMS, *own, *settings, *permitted, *((dest,) if dest else ()))
    return Domain(read, (*_DEVICES, *_written_paths(extra), folder))


def _uses_shell(extra: Iterable[str]) -> bool:
    """Return True if a remote shell or RSYNC_CONNECT_PROG makes the connection."""
    return "RSYNC_CONNECT_PROG" in os.environ or any(each.startswith(_SHELLS) for each in extra)


def _written_paths(extra: Iterable[str]) -> list[bytes]:
    """Return the paths that options let rsync write, with the folder of a log file."""
    writable: list[bytes] = []
    for option in extra:
        name, _, value = option.partition("=")
        if f"{name}=" in _WRITTEN and value.startswith("/"):
            path = os.fsencode(value)
            writable += [path, os.path.dirname(path)] if name == "--log-file" else [path]
    return writable
