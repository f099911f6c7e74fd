"""From the names of owners in the metadata to the ids in an attr tree.

A name that this machine does not know becomes root: rsync has to list an owner.  `#ID` stands for
the id itself.
"""

import grp
import os
import pwd
from functools import cache

_ID_MAX = (1 << 32) - 2
"""(uid_t)-1 means "leave it" to chown(2)."""
_UNKNOWN = 0


class OwnerIds:
    """Looks each name up once."""

    def __init__(self) -> None:
        """Nothing is looked up yet."""
        self.unknown: set[str] = set()
        """The names that were looked up in vain."""
        self.uid = cache(self._uid)
        self.gid = cache(self._gid)

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
