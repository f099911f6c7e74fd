"""Owners by name and by number on this machine.

Metadata carries names, because numbers differ between machines, or `#ID` where the upstream has no
name.  Each name and number is looked up once.
"""

import grp
import os
import pwd
from collections.abc import Callable
from typing import Final

_ID_MAX = (1 << 32) - 2
"""The largest number that can be set: chown(2) ignores (uid_t)-1."""


class _Lookup:
    """A cache of the numbers of users or of groups, by name."""

    def __init__(self, find: Callable[[str], int]) -> None:
        self._find = find
        self._numbers: dict[bytes, int | None] = {}
        self.unknown: set[bytes] = set()

    def number(self, name: bytes) -> int | None:
        if name not in self._numbers:
            number = self._numbers[name] = self._look_up(name)
            if number is None:
                self.unknown.add(name)
        return self._numbers[name]

    def _look_up(self, name: bytes) -> int | None:
        digits = name.removeprefix(b"#")
        if digits != name and digits.isdigit():
            number = int(digits)
            return number if number <= _ID_MAX else None
        try:
            return self._find(os.fsdecode(name))
        except (KeyError, ValueError):
            return None


class Owners:
    """Numbers by name, to set and to compare owners."""

    def __init__(self) -> None:
        self._users: Final = _Lookup(lambda name: pwd.getpwnam(name).pw_uid)
        self._groups: Final = _Lookup(lambda name: grp.getgrnam(name).gr_gid)

    def user(self, name: bytes) -> int | None:
        """Return the user's number; None for a name that is unknown on this machine."""
        return self._users.number(name)

    def group(self, name: bytes) -> int | None:
        """Return the group's number; None for a name that is unknown on this machine."""
        return self._groups.number(name)

    def uid(self, name: bytes, otherwise: int) -> int:
        """Return the user's number, or `otherwise`."""
        number = self.user(name)
        return otherwise if number is None else number

    def gid(self, name: bytes, otherwise: int) -> int:
        """Return the group's number, or `otherwise`."""
        number = self.group(name)
        return otherwise if number is None else number

    @property
    def unknown_users(self) -> frozenset[bytes]:
        """The requested users that are unknown on this machine."""
        return frozenset(self._users.unknown)

    @property
    def unknown_groups(self) -> frozenset[bytes]:
        """The requested groups that are unknown on this machine."""
        return frozenset(self._groups.unknown)


class Names:
    """Names by number, for entries read from the tree."""

    def __init__(self) -> None:
        self._users: Final[dict[int, bytes]] = {}
        self._groups: Final[dict[int, bytes]] = {}

    def user(self, uid: int) -> bytes:
        """Return the user's name, or `#ID`."""
        if uid not in self._users:
            try:
                self._users[uid] = os.fsencode(pwd.getpwuid(uid).pw_name)
            except KeyError:
                self._users[uid] = b"#%d" % uid
        return self._users[uid]

    def group(self, gid: int) -> bytes:
        """Return the group's name, or `#ID`."""
        if gid not in self._groups:
            try:
                self._groups[gid] = os.fsencode(grp.getgrgid(gid).gr_name)
            except KeyError:
                self._groups[gid] = b"#%d" % gid
        return self._groups[gid]
