"""The paths that rsync may use with a daemon: few, as the upstream is not trusted.

rsync may read DEST (its delta basis), its program and libraries, the files for resolving a host,
and the paths in `rsync_options`.  It may write to the folder that it receives into.  A run through
a remote shell is not confined: ssh needs keys, agents and helpers of its own.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Sequence

from huai_client.transfer.rsync.landlock import Domain
from huai_client.transfer.urls import ContentUrl, Transport

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
    """Return the paths for a run that receives into `folder`; None for all.

    `extra` are the administrator's options: the paths in them are permitted.
    """
    if url.transport is not Transport.DAEMON or _uses_shell(extra):
        return None
    path = os.path.realpath(shutil.which(program) or program)
    own = (os.fsencode(path), os.fsencode(os.path.dirname(path)), os.fsencode(sys.prefix))
    settings = (b"/etc/" + name for name in _SETTINGS)
    read = (*_PROGRAMS, *own, *settings, *_absolute_paths(extra), *((dest,) if dest else ()))
    return Domain(read, (*_DEVICES, *_written_paths(extra), folder))


def _uses_shell(extra: Iterable[str]) -> bool:
    """Return True if a remote shell or RSYNC_CONNECT_PROG makes the connection."""
    return "RSYNC_CONNECT_PROG" in os.environ or any(each.startswith(_SHELLS) for each in extra)


def _absolute_paths(extra: Iterable[str]) -> list[bytes]:
    """Return the absolute paths in the options."""
    values = (each.partition("=")[2] or each for each in extra)
    return [os.fsencode(value) for value in values if value.startswith("/")]


def _written_paths(extra: Iterable[str]) -> list[bytes]:
    """Return the paths that options let rsync write, with the folder of a log file."""
    writable: list[bytes] = []
    for option in extra:
        name, _, value = option.partition("=")
        if f"{name}=" in _WRITTEN and value.startswith("/"):
            path = os.fsencode(value)
            writable += [path, os.path.dirname(path)] if name == "--log-file" else [path]
    return writable
