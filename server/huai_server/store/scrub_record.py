"""The record of a module's scrubs: the progress of the round, and the damage found.

Damage stays recorded until a run finds it repaired.  The file has a line for each damaged file, up
to a limit, and none for the others.
"""

from pathlib import Path

import msgspec
from msgspec.structs import replace

from huai_program.record_file import RecordFile

MOST_DAMAGE = 1000
"""The most damaged files recorded: beyond that, single files do not matter."""


class Round(msgspec.Struct, frozen=True):
    """One pass over all files, and its progress."""

    begun: int
    """The time of its start, seconds since the epoch; may be in the future."""
    after: bytes | None = None
    """The last path that was read."""
    files: int = 0
    size: int = 0
    """The files read so far, and their bytes."""

    def passed(self, after: bytes, files: int, size: int) -> "Round":
        """Return the round after reading `files` more with `size` bytes, the last at `after`."""
        return replace(self, after=after, files=self.files + files, size=self.size + size)


class Damage(msgspec.Struct, frozen=True):
    """A file whose content does not match its digest, though size and mtime do."""

    path: bytes
    size: int
    mtime: int
    """Nanoseconds since the epoch."""
    expected: bytes
    """The committed digest."""
    found: bytes | None  # prose: a field of the file
    """The digest of its content; None if it cannot be read."""
    reason: str
    since: int
    """The time of the first finding, seconds since the epoch."""
    identity: tuple[int, int] | None = None
    """Inode and ctime at the last read: if they change, it is read again."""


class ScrubRecord(msgspec.Struct, frozen=True):
    """The state of a module's scrubs."""

    current: Round | None = None
    finished: int | None = None
    """The end of the last finished round, seconds since the epoch."""
    damage: tuple[Damage, ...] = ()

    @property
    def found_damage(self) -> tuple[tuple[bytes, int, int, bytes], ...]:
        """Return path, size, mtime (ns) and digest of content that no commit may record as new.

        Damaged files that cannot be read are left out.
        """
        return tuple(
            (each.path, each.size, each.mtime, each.found) for each in self.damage if each.found
        )


_FILE = RecordFile(ScrubRecord, permissions=0o644)


def read_record(path: Path) -> ScrubRecord:
    """Read the record, an empty one if it is missing or malformed; `OSError` if unreadable."""
    return _FILE.load(path) or ScrubRecord()


def write_record(path: Path, record: ScrubRecord) -> None:
    """Replace the record in one durable step; raises `OSError`."""
    _FILE.save(path, record)
