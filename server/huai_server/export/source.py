"""The source of an export, and the administrator's request: values, no disk.

The source is the *described commit*: the newest one with a change other than that of files that
exports write, and of the times of their directories.  All content comes from there, so that the
same bytes are written until the mirror itself changes.
"""

from dataclasses import dataclass

from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import ROOT, RelPath, ancestors


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The dialects to write, and facts that metadata do not have."""

    dialects: tuple[str, ...]
    list_name: str
    """The suffix of `fullfiletimelist-`, the name of the mirror's directory."""
    host: str
    """The name of the mirror, and of its trace file."""
    upstream: str
    heartbeat: int
    """Seconds after which stamps are renewed although nothing changed; 0 for never."""
    sums: tuple[RelPath, ...]
    """The directories that get a `B3SUMS`."""


class Exported:
    """The files in the tree that exports write."""

    def __init__(self, files: tuple[RelPath, ...] = ()) -> None:
        """Hold the paths of files, relative to the tree's root."""
        self.files = frozenset(files)
        self.directories = frozenset(above for file in files for above in ancestors(file))
        """All directories above the files, with the root."""

    def without_root(self) -> list[RelPath]:
        """Return the directories above the files, except the root, sorted."""
        return sorted(self.directories - {ROOT})


@dataclass(frozen=True, slots=True)
class Existing:
    """A file of an export that exists in the tree."""

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
    """The bytes of all files except those that exports write."""
    time: int
    """The time of the commit, in seconds since the epoch."""
    now: int
    """The time of the export, in seconds since the epoch, for heartbeats."""
    exported: Exported

    def stamp(self, heartbeat: int) -> int:
        """Return the time for stamps: that of the commit, or of the last heartbeat after it."""
        return max(self.time, self.now - self.now % heartbeat) if heartbeat else self.time

    @property
    def left_out(self) -> tuple[list[bytes], int]:
        """The paths that the engine leaves out, and the time of the commit."""
        return sorted(self.exported.files), self.time
