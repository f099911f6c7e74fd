"""The differences between two snapshots, as values."""

from typing import NamedTuple

from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath


class Change(NamedTuple):
    """A path that is new, removed or different."""

    path: RelPath
    old: Entry | None
    """The former entry; None for a new path."""
    new: Entry | None
    """The present entry; None for a removed path."""

    @property
    def attributes(self) -> frozenset[str]:
        """The names of the attributes that differ; empty if the path is new or removed."""
        if self.old is None or self.new is None:
            return frozenset()
        return differing(self.old, self.new)


class Moved(NamedTuple):
    """A directory that moved to another path with everything below it.

    Changes inside are stated as if the directory had always been at the new path.  The leader of a
    hardlink is relative to the link, so one outside of the moved directory has another path.
    """

    old: RelPath
    new: RelPath


def differing(old: Entry, new: Entry) -> frozenset[str]:
    """Return the names of the attributes in which two entries differ; paths are not compared.

    A digest that only one entry has is not a difference.
    """
    if type(old) is not type(new):
        return frozenset(("type",))
    names = {name for name in ("mtime", "mode", "owner", "group") if _unequal(old, new, name)}
    if isinstance(old, File) and isinstance(new, File):
        names |= {name for name in ("size", "link") if _unequal(old, new, name)}
        if old.digest and new.digest and old.digest != new.digest:
            names.add("digest")
    elif isinstance(old, Symlink) and isinstance(new, Symlink) and old.target != new.target:
        names.add("target")
    return frozenset(names)


def is_touched_directory(old: Entry | None, new: Entry | None) -> bool:
    """True if two directories differ in mtime alone: an entry in the directory changed."""
    if not isinstance(old, Directory) or not isinstance(new, Directory):
        return False
    return differing(old, new) == {"mtime"}


def merge_by_path(changes: list[Change]) -> dict[RelPath, Change]:
    """Return the changes by path; the two of a path that became or was a directory are one."""
    by_path: dict[RelPath, Change] = {}
    for change in changes:
        first = by_path.get(change.path, change)
        by_path[change.path] = Change(change.path, first.old or change.old, first.new or change.new)
    return by_path


def _unequal(old: File | Directory | Symlink, new: Entry, name: str) -> bool:
    return bool(getattr(old, name) != getattr(new, name))
