"""The paths that rsync may use while it talks to a daemon: few, as the upstream is not trusted.

rsync may read DEST (its delta basis), its program and libraries, the files for looking up a host,
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
"""Below /etc, and none of it secret."""
_DEVICES = (b"/dev/null", b"/dev/zero", b"/dev/random", b"/dev/urandom", b"/dev/tty")
_SHELLS = ("-e", "--rsh")
_WRITTEN = ("--log-file=", "--temp-dir=", "--partial-dir=")


def domain(
    url: ContentUrl, program: str, extra: Sequence[str], dest: bytes, folder: int
) -> Domain | None:
    """The paths that a run which receives into `folder` may use; None: all.

    `extra` are the administrator's options: the paths in them are allowed.
    """
    if url.transport is not Transport.DAEMON or _through_a_shell(extra):
        return None
    found = os.path.realpath(shutil.which(program) or program)
    here = (os.fsencode(found), os.fsencode(os.path.dirname(found)), os.fsencode(sys.prefix))
    settings = (b"/etc/" + name for name in _SETTINGS)
    read = (*_PROGRAMS, *here, *settings, *_named(extra), *((dest,) if dest else ()))
    return Domain(read, (*_DEVICES, *_written(extra), folder))


def _through_a_shell(extra: Iterable[str]) -> bool:
    """Whether a remote shell or RSYNC_CONNECT_PROG makes the connection."""
    return "RSYNC_CONNECT_PROG" in os.environ or any(each.startswith(_SHELLS) for each in extra)


def _named(extra: Iterable[str]) -> list[bytes]:
    """Every absolute path in the options."""
    values = (each.partition("=")[2] or each for each in extra)
    return [os.fsencode(value) for value in values if value.startswith("/")]


def _written(extra: Iterable[str]) -> list[bytes]:
    """The paths that options let rsync write, with the folder of a log file."""
    found: list[bytes] = []
    for each in extra:
        name, _, value = each.partition("=")
        if f"{name}=" in _WRITTEN and value.startswith("/"):
            path = os.fsencode(value)
            found += [path, os.path.dirname(path)] if name == "--log-file" else [path]
    return found
