"""Owners by name, as metadata has them, to the numbers that an attr tree has.

A name that this machine does not know becomes root's: the listing has to say something, and
whoever asks for names gets one.  `#ID` is the number itself.  A machine may get to know a name
later: so an image keeps a table of the names that it numbered.
"""

import grp
import os
import pwd
from functools import cache
from typing import Protocol

from huai_schema.codec.escaping import escape, unescape

_ID_MAX = (1 << 32) - 2
"""(uid_t)-1 means "leave it" to chown(2)."""
_UNKNOWN = 0


class OwnerIds:
    """Looks each name up once."""

    def __init__(self) -> None:
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


class OwnerLookup(Protocol):
    """From names to the ids of this machine, up to 2^32 - 2; 2^32 - 1 means "no id"."""

    def uid(self, name: bytes) -> int:
        """The id of a user; also for an unknown name."""

    def gid(self, name: bytes) -> int:
        """The id of a group; also for an unknown name."""


class OwnerNumbers:
    """The ids of one image; looks up each name once."""

    def __init__(self, owners: OwnerLookup) -> None:
        """Begin with no name."""
        self._owners = owners
        self._users: dict[bytes, int] = {}
        self._groups: dict[bytes, int] = {}
        self._pairs: dict[tuple[bytes, bytes], tuple[int, int]] = {}

    def pair(self, owner: bytes, group: bytes) -> tuple[int, int]:
        """The ids of an owner and a group."""
        found = self._pairs.get((owner, group))
        if found is None:
            self._users[owner] = self._owners.uid(owner)
            self._groups[group] = self._owners.gid(group)
            found = self._pairs[owner, group] = self._users[owner], self._groups[group]
        return found

    def table(self) -> bytes:
        """A line for each name, sorted: `user` or `group`, the escaped name, the id."""
        lines = [
            b"%s\t%s\t%d\n" % (kind, escape(name), number)
            for kind, known in ((b"user", self._users), (b"group", self._groups))
            for name, number in sorted(known.items())
        ]
        return b"".join(lines)


def first_changed(table: bytes, owners: OwnerLookup) -> str | None:
    """The first owner in `table` that has another id now, for people; None: all are right."""
    for line in table.splitlines():
        kind, name, number = line.split(b"\t")
        find = owners.uid if kind == b"user" else owners.gid
        if find(unescape(name)) != int(number):
            return f"{kind.decode()} {name.decode('utf-8', 'backslashreplace')}"
    return None
