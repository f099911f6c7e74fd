"""The merge of two streams in tree order: what is there, and what should be.

Compares attributes only.  Memory grows with the largest directory and the number of
hardlink groups, not with the tree.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from huai_client.tree import PathError, View
from huai_client.tree.local_entry import LocalEntry, Unreadable, differences, stat_entry, walk
from huai_client.tree.owners import Owners
from huai_client.tree.scope import WHOLE, Scope
from huai_schema.entries import Directory, Entry, File
from huai_schema.paths import RelPath, parent, tree_order


class Match(NamedTuple):
    """A path that is there and should be; `attributes` differ (empty: all are right)."""

    wanted: Entry
    observed: LocalEntry
    attributes: frozenset[str]


class Missing(NamedTuple):
    """A path that should be there, and is not."""

    wanted: Entry


class Extraneous(NamedTuple):
    """A path that is there, and should not be."""

    path: RelPath
    directory: bool


Finding: TypeAlias = Match | Missing | Extraneous | Unreadable


def merge(
    view: View, wanted: Iterable[Entry], *, owners: Owners | None, scope: Scope = WHOLE
) -> Iterator[Finding]:
    """Every path of either side once; `wanted` is in tree order, and all of it in `scope`.

    In tree order too, but for extraneous leaves, which come after the directories beside
    them: one of those may be wanted under the extraneous leaf's name, and that is one finding,
    a `Match` with the attribute "type".
    """
    yield from Merge(view, owners, scope).run(wanted)


class Merge:
    """The same as `merge`, for a caller that may stop before the end."""

    def __init__(self, view: View, owners: Owners | None, scope: Scope) -> None:
        """As `merge`."""
        self._view = view
        self._owners = owners
        self._scope = scope
        self._extraneous: dict[RelPath, bytes] = {}
        """Extraneous leaves that wait, innermost last, with the key of their directory."""
        self._retyped: set[RelPath] = set()
        """Directories in the place of a wanted leaf, which are reported already."""
        self._blind = b"\xff"
        """Key of a directory that could not be read.  No key begins with 0xff."""
        self._groups: set[tuple[int, int]] = set()

    def run(self, wanted: Iterable[Entry]) -> Iterator[Finding]:
        """The findings; skips the entries of `wanted` that `scope` has passed."""
        walked = walk(self._view, self._scope)
        here = next(walked, None)
        for entry in wanted:
            key = tree_order(entry.path, directory=isinstance(entry, Directory))
            if self._scope.after and key <= self._scope.after:
                continue
            while here is not None and _comes_first(here, key):
                yield from self._only_here(here)
                here = next(walked, None)
            yield from self._waiting(key)
            if isinstance(here, LocalEntry) and _key(here) == key:
                yield self._match(entry, here)
                here = next(walked, None)
            elif not key.startswith(self._blind):
                yield self._not_walked(entry)
        while here is not None:
            yield from self._only_here(here)
            here = next(walked, None)
        yield from (Extraneous(path, directory=False) for path in self._extraneous)

    def extraneous(self, wanted: Callable[[RelPath], bool]) -> Iterator[Extraneous]:
        """The extraneous leaves that are not reported yet, without those that are `wanted`."""
        for path in [path for path in self._extraneous if not wanted(path)]:
            del self._extraneous[path]
            yield Extraneous(path, directory=False)

    def _only_here(self, here: LocalEntry | Unreadable) -> Iterator[Finding]:
        key = _key(here)
        yield from self._waiting(key)
        if isinstance(here, Unreadable):
            self._blind = key
            yield here
        elif not isinstance(here.entry, Directory):
            self._extraneous[here.path] = tree_order(parent(here.path), directory=True)
        elif here.path not in self._retyped:
            yield Extraneous(here.path, directory=True)

    def _waiting(self, key: bytes) -> Iterator[Extraneous]:
        """The extraneous leaves of directories that end before `key`."""
        done: list[RelPath] = []
        while self._extraneous:
            path, folder = self._extraneous.popitem()
            if key.startswith(folder):
                self._extraneous[path] = folder
                break
            done.append(path)
        yield from (Extraneous(path, directory=False) for path in reversed(done))

    def _not_walked(self, entry: Entry) -> Finding:
        """The finding for a wanted entry that the walk did not meet."""
        try:
            found = stat_entry(self._view, entry.path)
        except PathError as error:
            return Unreadable(entry.path, error.reason, directory=isinstance(entry, Directory))
        if found is None:
            return Missing(entry)
        if self._extraneous.pop(entry.path, None) is None:
            self._retyped.add(entry.path)
        return self._match(entry, found)

    def _match(self, entry: Entry, here: LocalEntry) -> Match:
        leader = None
        if isinstance(entry, File) and entry.link is not None:
            leader = self._leader(entry.link)
        found = differences(here, entry, owners=self._owners, leader=leader)
        if isinstance(entry, File) and entry.link is None and here.nlinks > 1:
            # One inode here for two groups of the snapshot: a change of one would change both.
            inode = (here.device, here.inode)
            if inode in self._groups:
                found |= {"link"}
            self._groups.add(inode)
        return Match(entry, here, found)

    def _leader(self, path: RelPath) -> LocalEntry | None:
        try:
            return stat_entry(self._view, path)
        except PathError:
            return None


def _key(here: LocalEntry | Unreadable) -> bytes:
    if isinstance(here, Unreadable):
        return tree_order(here.path, directory=here.directory)
    return tree_order(here.path, directory=isinstance(here.entry, Directory))


def _comes_first(here: LocalEntry | Unreadable, key: bytes) -> bool:
    """Whether `here` comes before the wanted entry at `key`."""
    mine = _key(here)
    return mine < key or (mine == key and isinstance(here, Unreadable))
