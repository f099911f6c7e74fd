"""How far behind the tree a watched module's commits are, as a small file for `status`.

It is replaced whenever that changes: with the first change, and after a commit.
"""

import msgspec

from huai_program.locking import holder
from huai_program.record_file import RecordFile
from huai_server.state.paths import ModulePlaces


class WatchRecord(msgspec.Struct, frozen=True):
    """What a watcher knows."""

    directories: int = 0
    """That are watched."""
    unwatched: int = 0
    """That cannot be, nor what is below: the next scan finds what changed there."""
    since: int | None = None
    """When the oldest change that is not committed was seen, seconds since the epoch."""


class Watched(msgspec.Struct, frozen=True):
    """A module that is watched now."""

    process: int
    record: WatchRecord


def write_record(places: ModulePlaces, record: WatchRecord) -> None:
    """Replace the file; whoever calls this holds the lock `places.watching`."""
    RecordFile(WatchRecord, permissions=0o644).save(places.watched, record)


def read_watched(places: ModulePlaces) -> Watched | None:
    """Who watches the module, and what it knows; None: nobody does."""
    process = holder(places.watching)
    if process is None:
        return None
    record = RecordFile(WatchRecord, needed=False).load(places.watched)
    return Watched(process, record or WatchRecord())  # it may have just begun
