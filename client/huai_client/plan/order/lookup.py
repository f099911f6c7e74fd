"""Looks up names in the directories of a snapshot, without decoding the entries.  Pure.

Reads each own directory once, with all that is inlined in it, and keeps the last few: paths are
asked for in tree order, so neighbours follow each other.  Text search comes first: an own directory
whose text does not contain the name, as most do not, is not parsed.
"""

import re
from functools import cache, lru_cache
from typing import NamedTuple

from huai_client.plan.order.patterns import component
from huai_schema.codec.escaping import escape
from huai_schema.codec.listing import Listing
from huai_schema.layout.snapshot import EntryLimit, Snapshot
from huai_schema.paths import ROOT, RelPath, basename, join, parent

_KEPT = 32
"""The number of parsed own directories in the cache."""
_HINTS = 1024
"""The number of text searches in the cache."""


class _Level(NamedTuple):
    """The names in an own directory and in the directories that are inlined in it."""

    leaves: dict[RelPath, bytes]
    """By directory: the lines of its files and symlinks."""
    folders: dict[RelPath, set[bytes]]
    """By directory: the names of its subdirectories."""


class _Leaf(NamedTuple):
    """The last component of a marker that names a file or symlink."""

    hint: bytes
    """A literal part of the name, to search for before the expression is tried."""
    line: re.Pattern[bytes]

    def is_in(self, leaves: bytes) -> bool:
        """Whether the lines of a directory contain a matching name."""
        return self.hint in leaves and self.line.search(leaves) is not None


def _hint(name: bytes) -> bytes:
    """The longest part of a glob without a wildcard."""
    return max(re.split(rb"[*?]+", name), key=len)


@cache
def _first_hint(marker: str) -> bytes:
    """Text that an own directory contains if `marker` fits there: of the first component."""
    return _hint(marker.encode().partition(b"/")[0])


@cache
def _taken_apart(marker: str) -> tuple[list[bytes], _Leaf | None]:
    """The directories of a marker, and its leaf; None: the marker names a directory."""
    *names, leaf = marker.encode().split(b"/")
    if not leaf:
        return names, None
    line = re.compile(b"^" + component(leaf, rb"[^\t\n]") + b"\t", re.MULTILINE)
    return names, _Leaf(_hint(leaf), line)


class Lookup:
    """Answers about the directories of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Reads nothing yet."""
        self._snapshot = snapshot
        self._level = lru_cache(_KEPT)(self._read)
        self._own = lru_cache(_KEPT)(self._find_own)
        self._text = lru_cache(1)(self._read_text)
        self._mentions = lru_cache(_HINTS)(self._look_up)

    def has(self, folder: RelPath, marker: str) -> bool:
        """Whether `marker` fits in `folder`: "a/b" names a leaf, "a/" a directory; may be globs."""
        if not self._mentions(self._own(folder), _first_hint(marker)):
            return False
        names, leaf = _taken_apart(marker)
        found = [folder]
        for name in names:
            found = [join(each, child) for each in found for child in self._children(each, name)]
        if leaf is None:
            return bool(found)
        return any(leaf.is_in(self._leaves(each)) for each in found)

    def names(self, path: RelPath) -> bool:
        """Whether anything stands at `path`."""
        if self.is_directory(path):
            return True
        line = b"\n" + escape(basename(path)) + b"\t"
        return line in b"\n" + self._leaves(parent(path))

    def is_directory(self, path: RelPath) -> bool:
        """Whether a directory stands at `path`."""
        return not path or basename(path) in self._folders(parent(path))

    def _children(self, folder: RelPath, glob: bytes) -> list[bytes]:
        names = self._folders(folder)
        if b"*" not in glob and b"?" not in glob:
            return [glob] if glob in names else []
        pattern = re.compile(component(glob))
        return [name for name in names if pattern.fullmatch(name)]

    def _leaves(self, folder: RelPath) -> bytes:
        level = self._find(folder)
        return level.leaves.get(folder, b"") if level else b""

    def _folders(self, folder: RelPath) -> set[bytes]:
        level = self._find(folder)
        return level.folders.get(folder, set()) if level else set()

    def _find_own(self, folder: RelPath) -> tuple[RelPath, bytes]:
        """Path and tree of the own directory that describes `folder`, if `folder` exists."""
        tree, names = self._snapshot.tree, folder.split(b"/") if folder else []
        here = ROOT
        for name in names:
            children = self._snapshot.own_directory(here, tree).children
            if name not in children:
                break
            here, tree = join(here, name), children[name]
        return here, tree

    def _find(self, folder: RelPath) -> _Level | None:
        """The own directory that describes `folder`; None: `folder` does not exist."""
        level: _Level = self._level(*self._own(folder))
        return level if folder in level.leaves else None

    def _look_up(self, own: tuple[RelPath, bytes], hint: bytes) -> bool:
        """Whether a name in an own directory may contain `hint`."""
        return hint in self._text(*own)

    def _read_text(self, path: RelPath, tree: bytes) -> bytes:
        """The text of an own directory: its subdirectories' names and its manifest."""
        directory = self._snapshot.own_directory(path, tree)
        texts = [self._snapshot.reader.read(oid, "blob") for oid in directory.manifests()]
        return b"\n".join((*directory.children, *texts))

    def _read(self, path: RelPath, tree: bytes) -> _Level:
        leaves: dict[RelPath, bytes] = {}
        folders: dict[RelPath, set[bytes]] = {}
        for step in self._snapshot.level(path, tree, EntryLimit(self._snapshot.limit)):
            here = step.path if isinstance(step, Listing) else step[0]
            if isinstance(step, Listing):
                leaves[here] = step.leaves
            if here != path:
                folders.setdefault(parent(here), set()).add(basename(here))
        return _Level(leaves, folders)
