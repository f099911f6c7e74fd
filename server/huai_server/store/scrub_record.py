"""What scrubs of a module remember: how far the round is, and the damage that they found.

Damage is there until a run sees that it is none any more.  The file has a line for each damaged
file, of which there is a limit, and none for the others.
"""

from pathlib import Path

import msgspec
from msgspec.structs import replace

from huai_program.record_file import RecordFile

MOST_DAMAGE = 1000
"""Damaged files that are remembered: more are no matter of single files."""


class Round(msgspec.Struct, frozen=True):
    """One pass over all files, as far as it has come."""

    begun: int
    """Seconds since the epoch; may lie ahead."""
    after: bytes | None = None
    """The last path that was read."""
    files: int = 0
    size: int = 0
    """Of what was passed, the latter in bytes."""

    def passed(self, after: bytes, files: int, size: int) -> "Round":
        """The same, `files` of `size` bytes further."""
        return replace(self, after=after, files=self.files + files, size=self.size + size)


class Damage(msgspec.Struct, frozen=True):
    """A file whose content is not what its digest names, though size and mtime are."""

    path: bytes
    size: int
    mtime: int
    """Nanoseconds since the epoch."""
    expected: bytes
    """The digest that is committed."""
    found: bytes | None
    """The one that it has; None: it cannot be read."""
    reason: str
    since: int
    """When it was found first, seconds since the epoch."""
    identity: tuple[int, int] | None = None
    """Inode and ctime when it was read last: with others it is read again."""


class ScrubRecord(msgspec.Struct, frozen=True):
    """The state of a module's scrubs."""

    current: Round | None = None
    """None: none was begun."""
    finished: int | None = None
    """When the last round came to its end, seconds since the epoch."""
    damage: tuple[Damage, ...] = ()

    @property
    def found_damage(self) -> tuple[tuple[bytes, int, int, bytes], ...]:
        """Path, size, mtime and digest of content that no commit takes for new content."""
        return tuple(
            (each.path, each.size, each.mtime, each.found) for each in self.damage if each.found
        )


_FILE = RecordFile(ScrubRecord, permissions=0o644)


def read_record(path: Path) -> ScrubRecord:
    """The record; an empty one if there is none that can be read."""
    return _FILE.load(path) or ScrubRecord()


def write_record(path: Path, record: ScrubRecord) -> None:
    """Replace the record in one durable step."""
    _FILE.save(path, record)
