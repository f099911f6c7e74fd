"""Owners by name, as metadata has them, to the numbers that an attr tree has.

A name that this machine does not know becomes root's: the listing has to say something, and
whoever asks for names gets one.  `#ID` is the number itself.
"""

import grp
import os
import pwd
from collections.abc import Callable
from functools import cache
from typing import Self

_ID_MAX = (1 << 32) - 2
"""(uid_t)-1 means "leave it" to chown(2)."""
_UNKNOWN = 0


class OwnerIds:
    """The ids of this machine; looks each name up once."""

    uid: Callable[[bytes], int]
    """Returns the id of a user, up to 2^32 - 2; also for an unknown name."""
    gid: Callable[[bytes], int]
    """Returns the id of a group."""

    def __init__(self) -> None:
        self.unknown: set[str] = set()
        """The names that were looked up in vain."""
        self.uid = cache(self._uid)
        self.gid = cache(self._gid)

    @classmethod
    def of_this_process(cls) -> Self:
        """Every name stands for the user, or the group, that runs this."""
        ids, uid, gid = cls(), os.geteuid(), os.getegid()
        ids.uid, ids.gid = (lambda _: uid), (lambda _: gid)
        return ids

    def _uid(self, name: bytes) -> int:
        try:
            return _literal(name) or pwd.getpwnam(os.fsdecode(name)).pw_uid
        except (KeyError, ValueError):
            return self._not_known("user", name)

    def _gid(self, name: bytes) -> int:
        try:
            return _literal(name) or grp.getgrnam(os.fsdecode(name)).gr_gid
        except (KeyError, ValueError):
            return self._not_known("group", name)

    def _not_known(self, what: str, name: bytes) -> int:
        if name != b"#0":
            self.unknown.add(f"{what} {os.fsdecode(name)!r}")
        return _UNKNOWN


def _literal(name: bytes) -> int:
    """The number that `#ID` spells; 0 for anything else."""
    digits = name[1:]
    number = int(digits) if name[:1] == b"#" and digits.isdigit() else 0
    return number if number <= _ID_MAX else 0
