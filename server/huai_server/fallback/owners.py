"""Conversion of owner names in metadata to the ids in an attr tree.

A name that is unknown on this machine becomes root, because a listing must have an id and rsync
may convert it to a name.  `#ID` is the id itself.
"""

import grp
import os
import pwd
from collections.abc import Callable
from functools import cache
from typing import Self

_ID_MAX = (1 << 32) - 2
"""The greatest id: chown(2) keeps the owner for (uid_t)-1."""
_UNKNOWN = 0


class OwnerIds:
    """The ids of this machine, each looked up once."""

    uid: Callable[[bytes], int]
    """Returns the id of a user, up to 2^32 - 2, or root's for an unknown name."""
    gid: Callable[[bytes], int]

    def __init__(self) -> None:
        self.unknown: set[str] = set()
        """The names that were not found, each with `user` or `group` before it."""
        self.uid = cache(self._uid)
        self.gid = cache(self._gid)

    @classmethod
    def of_this_process(cls) -> Self:
        """Return ids that are those of this process for every name."""
        ids, uid, gid = cls(), os.geteuid(), os.getegid()
        ids.uid, ids.gid = (lambda _: uid), (lambda _: gid)
        return ids

    def _uid(self, name: bytes) -> int:
        """Return a user's id; root's, noted in `unknown`, if it is unknown here."""
        try:
            return _literal(name) or pwd.getpwnam(os.fsdecode(name)).pw_uid
        except (KeyError, ValueError):
            return self._record_unknown("user", name)

    def _gid(self, name: bytes) -> int:
        """Return a group's id; root's, noted in `unknown`, if it is unknown here."""
        try:
            return _literal(name) or grp.getgrnam(os.fsdecode(name)).gr_gid
        except (KeyError, ValueError):
            return self._record_unknown("group", name)

    def _record_unknown(self, kind: str, name: bytes) -> int:
        """Record a name that was not found, except `#0`; return root's id."""
        if name != b"#0":
            self.unknown.add(f"{kind} {os.fsdecode(name)!r}")
        return _UNKNOWN


def _literal(name: bytes) -> int:
    """Parse `#ID` to its number; 0 for any other text, and for an id that is out of range."""
    digits = name[1:]
    number = int(digits) if name[:1] == b"#" and digits.isdigit() else 0
    return number if number <= _ID_MAX else 0
