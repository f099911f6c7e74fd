"""Names of users and groups, each looked up once a scan.

An id without a usable name is `#ID`: no name is known, or it is longer than the format allows, or
it begins like an id.  The native scanner holds the same rule in c/owners.c.
"""

import grp
import os
import pwd
from collections.abc import Callable
from functools import cache

from huai_schema.limits import OWNER_BYTES


class Owners:
    """Remembers the names of one scan; a new scan sees new names."""

    def __init__(self) -> None:
        """Nothing is looked up yet."""
        self.user = cache(_user)
        self.group = cache(_group)


def _user(uid: int) -> bytes:
    return _name(uid, lambda: pwd.getpwuid(uid).pw_name)


def _group(gid: int) -> bytes:
    return _name(gid, lambda: grp.getgrgid(gid).gr_name)


def _name(number: int, look_up: Callable[[], str]) -> bytes:
    try:
        name = os.fsencode(look_up())
    except KeyError:
        name = b""
    return name if 0 < len(name) <= OWNER_BYTES and not name.startswith(b"#") else b"#%d" % number
