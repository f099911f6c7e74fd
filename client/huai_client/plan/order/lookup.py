"""Looks into a snapshot: what names a directory holds, without decoding what they are.  Pure.

Reads each own directory once for all that is inlined in it, and keeps the last few: paths
are judged in order, so neighbours come together.  One whose text does not even mention what is
asked for, as most do not, is not taken apart.
"""

import re
from functools import cache, lru_cache
from typing import NamedTuple

from huai_client.plan.order.patterns import component
from huai_schema.codec.escaping import escape
from huai_schema.codec.listing import Listing
from huai_schema.layout.entry_limit import EntryLimit
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import ROOT, RelPath, basename, join, parent

_KEPT = 32
"""Own directories."""
_HINTS = 1024
"""Whether an own directory mentions something."""


class _Level(NamedTuple):
    """An own directory: what stands in its manifest, and its other subdirectories."""

    leaves: dict[RelPath, bytes]
    """The lines of files and symlinks of each directory that is described there."""
    folders: dict[RelPath, set[bytes]]
    """Names of the subdirectories of each."""


class _Leaf(NamedTuple):
    """A file or symlink that a marker asks for."""

    hint: bytes
    """A part of its name: looking for that is quick, and most directories have none."""
    line: re.Pattern[bytes]

    def is_in(self, leaves: bytes) -> bool:
        """Whether the lines of a directory hold it."""
        return self.hint in leaves and self.line.search(leaves) is not None


def _hint(name: bytes) -> bytes:
    """The longest part of a glob that says what it is."""
    return max(re.split(rb"[*?]+", name), key=len)


@cache
def _first_hint(marker: str) -> bytes:
    """What the text of a directory mentions that holds what a marker says."""
    return _hint(marker.encode().partition(b"/")[0])


@cache
def _taken_apart(marker: str) -> tuple[list[bytes], _Leaf | None]:
    """The directories that a marker leads through, and the leaf there, if it names one."""
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
        """Whether `folder` holds what a marker says: "a/b" a leaf, "a/" a directory; globs."""
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
        """Path and tree of the own directory in which `folder` stands, if it exists."""
        tree, names = self._snapshot.tree, folder.split(b"/") if folder else []
        here = ROOT
        for name in names:
            children = self._snapshot.own_directory(here, tree).children
            if name not in children:
                break
            here, tree = join(here, name), children[name]
        return here, tree

    def _find(self, folder: RelPath) -> _Level | None:
        """The own directory that describes `folder`; None: no such directory."""
        level: _Level = self._level(*self._own(folder))
        return level if folder in level.leaves else None

    def _look_up(self, own: tuple[RelPath, bytes], hint: bytes) -> bool:
        """Whether anything in an own directory may have a name with `hint` in it."""
        return hint in self._text(*own)

    def _read_text(self, path: RelPath, tree: bytes) -> bytes:
        """All names in an own directory, as its manifest has them, among other things."""
        directory = self._snapshot.own_directory(path, tree)
        pieces = self._snapshot.pieces(directory).values()
        texts = [self._snapshot.reader.read(piece.manifest, "blob") for piece in pieces]
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
