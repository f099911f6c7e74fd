"""The numbers that owners get in an image, and whether they are still the right ones.

Pure.  Metadata names owners, an image numbers them, and a machine may get to know a name later:
so an image keeps a table of the names that it numbered.
"""

from typing import Protocol

from huai_schema.codec.escaping import escape, unescape


class OwnerLookup(Protocol):
    """Names of owners as numbers of this machine, up to 2^32 - 2: the next one means none."""

    def uid(self, name: bytes) -> int:
        """The user's number, whatever becomes of an unknown one."""

    def gid(self, name: bytes) -> int:
        """The group's number, whatever becomes of an unknown one."""


class OwnerNumbers:
    """Asks once for each name, and remembers."""

    def __init__(self, owners: OwnerLookup) -> None:
        """Begin with no name."""
        self._owners = owners
        self._users: dict[bytes, int] = {}
        self._groups: dict[bytes, int] = {}
        self._pairs: dict[tuple[bytes, bytes], tuple[int, int]] = {}

    def pair(self, owner: bytes, group: bytes) -> tuple[int, int]:
        """The numbers of an entry's owners."""
        found = self._pairs.get((owner, group))
        if found is None:
            self._users[owner] = self._owners.uid(owner)
            self._groups[group] = self._owners.gid(group)
            found = self._pairs[owner, group] = self._users[owner], self._groups[group]
        return found

    def table(self) -> bytes:
        """A line for each name, sorted: what it names, the name escaped, the number."""
        lines = [
            b"%s\t%s\t%d\n" % (kind, escape(name), number)
            for kind, known in ((b"user", self._users), (b"group", self._groups))
            for name, number in sorted(known.items())
        ]
        return b"".join(lines)


def first_changed(table: bytes, owners: OwnerLookup) -> str | None:
    """The first owner in a table that has another number now, for people; None: all are right."""
    for line in table.splitlines():
        kind, name, number = line.split(b"\t")
        find = owners.uid if kind == b"user" else owners.gid
        if find(unescape(name)) != int(number):
            return f"{kind.decode()} {name.decode('utf-8', 'backslashreplace')}"
    return None
