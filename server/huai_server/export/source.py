"""What an export describes, and what the administrator wants of it: values, no disk.

An export describes the *described commit*: the newest one in which something else changed than the
files that exports write, and the times of the directories that hold them.  Everything in a file
comes from there, so that the same bytes are written until the mirror itself changes.
"""

from dataclasses import dataclass

from huai_schema.git.objects import ObjectReader
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import ROOT, RelPath, ancestors


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which files are to be written, and what metadata do not know."""

    dialects: tuple[str, ...]
    list_name: str
    """What stands behind the `-` of `fullfiletimelist-`: the name of the mirror's directory."""
    host: str
    """The name of the mirror: that of its trace file."""
    upstream: str
    """Where the tree comes from; empty: nobody said."""
    heartbeat: int
    """Seconds after which stamps are renewed even if nothing changed; 0: they never are."""
    sums: tuple[RelPath, ...]
    """Directories that get a `B3SUMS`."""


class Exported:
    """The files in the tree that exports write."""

    def __init__(self, files: tuple[RelPath, ...] = ()) -> None:
        """`files` as they are seen from the tree's root."""
        self.files = frozenset(files)
        self.directories = frozenset(above for file in files for above in ancestors(file))
        """All directories that hold one of them, the root too."""

    def without_root(self) -> list[RelPath]:
        """The directories that have a line in a list."""
        return sorted(self.directories - {ROOT})


@dataclass(frozen=True, slots=True)
class Existing:
    """A file of an export that stands in the tree."""

    path: RelPath
    size: int
    mtime: int
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Source:
    """The described commit."""

    module: str
    snapshot: Snapshot
    size: int
    """Bytes of all files, without those that exports write."""
    time: int
    """When it was made, in seconds since the epoch."""
    now: int
    exported: Exported

    def stamp(self, heartbeat: int) -> int:
        """What stamps say: the time of the commit, or of the last heartbeat after it."""
        return max(self.time, self.now - self.now % heartbeat) if heartbeat else self.time

    @property
    def lent(self) -> tuple[ObjectReader, bytes, int]:
        """The snapshot as the engine takes it."""
        return self.snapshot.reader, self.snapshot.tree, self.snapshot.limit

    @property
    def own(self) -> tuple[list[bytes], int]:
        """What the engine leaves out."""
        return sorted(self.exported.files), self.time
