"""What differs between two snapshots, as values."""

from typing import NamedTuple

from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath


class Change(NamedTuple):
    """One path that is new, gone or different."""

    path: RelPath
    old: Entry | None
    """None: the path is new."""
    new: Entry | None
    """None: the path is gone."""

    @property
    def attributes(self) -> frozenset[str]:
        """Names of what differs; empty if the path is new or gone."""
        if self.old is None or self.new is None:
            return frozenset()
        return differing(self.old, self.new)


class Moved(NamedTuple):
    """A directory that stands at another path with all below it.

    What differs in it is stated as if the directory had always been at the new path.  Leaders of
    hardlinks are stated relative to the link: one that leads out of the moved directory names
    another path than before.
    """

    old: RelPath
    new: RelPath


def differing(old: Entry, new: Entry) -> frozenset[str]:
    """Names of the attributes in which two entries differ; paths are not compared.

    A digest that one side does not know is not a difference by itself.
    """
    if type(old) is not type(new):
        return frozenset(("type",))
    found = {name for name in ("mtime", "mode", "owner", "group") if _unequal(old, new, name)}
    if isinstance(old, File) and isinstance(new, File):
        found |= {name for name in ("size", "link") if _unequal(old, new, name)}
        if old.digest and new.digest and old.digest != new.digest:
            found.add("digest")
    elif isinstance(old, Symlink) and isinstance(new, Symlink) and old.target != new.target:
        found.add("target")
    return frozenset(found)


def is_touched_directory(old: Entry | None, new: Entry | None) -> bool:
    """True if a directory has another time and no other difference: something in it changed."""
    if not isinstance(old, Directory) or not isinstance(new, Directory):
        return False
    return differing(old, new) == {"mtime"}


def joined(changes: list[Change]) -> dict[RelPath, Change]:
    """Changes by path; a file that became a directory, or back, is one change."""
    by_path: dict[RelPath, Change] = {}
    for change in changes:
        seen = by_path.get(change.path, change)
        by_path[change.path] = Change(change.path, seen.old or change.old, seen.new or change.new)
    return by_path


def _unequal(old: File | Directory | Symlink, new: Entry, name: str) -> bool:
    return bool(getattr(old, name) != getattr(new, name))
