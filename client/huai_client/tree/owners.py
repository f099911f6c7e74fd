"""Owners by name and by number on this machine.

Metadata carries names, because numbers differ between machines, or `#ID` where the upstream has no
name.  Each name and number is looked up once.
"""

import grp
import os
import pwd
from collections.abc import Callable
from functools import cache, partial
from typing import Final

_ID_MAX = (1 << 32) - 2
"""The largest number that can be set: chown(2) ignores (uid_t)-1."""


class Owners:
    """Numbers by name, to set and to compare owners; None for a name that is unknown here."""

    def __init__(self) -> None:
        self.unknown: Final = set[bytes]()
        """The requested names that are unknown on this machine."""
        self.user: Final = cache(partial(self._number, lambda name: pwd.getpwnam(name).pw_uid))
        self.group: Final = cache(partial(self._number, lambda name: grp.getgrnam(name).gr_gid))

    def _number(self, find: Callable[[str], int], name: bytes) -> int | None:
        """Return the id of a name or of `#ID`; None if unknown, which is added to `unknown`."""
        digits = name.removeprefix(b"#")
        try:
            number = int(digits) if digits != name and digits.isdigit() else find(os.fsdecode(name))
            if number <= _ID_MAX:
                return number
        except (KeyError, ValueError):
            pass
        self.unknown.add(name)
        return None


class Names:
    """Names by number, for entries read from the tree; `#ID` for a number without a name."""

    def __init__(self) -> None:
        self.user: Final = cache(partial(_name, lambda uid: pwd.getpwuid(uid).pw_name))
        self.group: Final = cache(partial(_name, lambda gid: grp.getgrgid(gid).gr_name))


def _name(find: Callable[[int], str], number: int) -> bytes:
    """Return the name of an id, or `#ID` if it has none."""
    try:
        return os.fsencode(find(number))
    except KeyError:
        return b"#%d" % number
