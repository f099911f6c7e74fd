"""The lag of a watched module's commits, as a small file for `status`.

It is replaced at the first change after a commit, and after each commit.
"""

import msgspec

from huai_program.locking import holder
from huai_program.record_file import RecordFile
from huai_server.state.paths import ModulePlaces


class WatchRecord(msgspec.Struct, frozen=True):
    """The state of a watcher."""

    directories: int = 0
    """Directories that are watched; 0 if the file system is."""
    unwatched: int = 0
    """Directories that cannot be watched, nor those below; the next scan finds their changes."""
    since: int | None = None
    """The time of the oldest uncommitted change, in seconds since the epoch."""


class Watched(msgspec.Struct, frozen=True):
    """A running watcher of a module."""

    process: int
    record: WatchRecord


def write_record(places: ModulePlaces, record: WatchRecord) -> None:
    """Replace the module's file durably; the caller holds the lock `places.watching`."""
    RecordFile(WatchRecord, permissions=0o644).save(places.watched, record)


def read_watched(places: ModulePlaces) -> Watched | None:
    """Return the process and record of the module's running watcher; None if none runs."""
    process = holder(places.watching)
    if process is None:
        return None
    record = RecordFile(WatchRecord, needed=False).load(places.watched)
    return Watched(process, record or WatchRecord())  # it may have just started
