"""The ids of owners in an image, and whether they are still right.

Pure.  Metadata has names, an image has ids, and a name may get its id on this machine after the
image was built.  So an image keeps a table of its names and ids.
"""

from typing import Protocol

from huai_schema.codec.escaping import escape, unescape


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
