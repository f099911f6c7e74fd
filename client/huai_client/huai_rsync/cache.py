"""A cache of the drop-in for each module, and a mark for syncs after the real rsync.

A file beside the module's state: the content URLs, the number of entries, and when the whole tree
was last compared.  So a call that finds nothing new does not open the repository; if the file is
lost, it does.
"""

from dataclasses import replace
from pathlib import Path

import msgspec

from huai_client.huai_rsync.stats import Kinds
from huai_client.state import state as states
from huai_client.state.lock import module_lock
from huai_client.state.paths import ModulePlaces
from huai_client.state.run_record import Number
from huai_program.record_file import RecordFile

_NAME = "rsync.json"


class Memory(msgspec.Struct, frozen=True):
    """The cached values for one commit."""

    commit: str
    sources: tuple[str, ...]
    """The content URLs that the upstream names."""
    entries: tuple[Number, Number, Number]
    """Files, directories, symlinks; all zero: not counted."""
    compared: Number = 0
    """When the last call that compared the whole tree began, seconds since the epoch; 0: never."""

    @property
    def kinds(self) -> Kinds | None:
        """The entries; None: not counted."""
        return Kinds(*self.entries) if any(self.entries) else None


def recall(places: ModulePlaces, commit: str | None) -> Memory | None:
    """The cached values, if they are for `commit`, the applied one."""
    found = remembered(places)
    return found if found and found.commit == commit else None


def remembered(places: ModulePlaces) -> Memory | None:
    """The cached values, for whichever commit."""
    return RecordFile(Memory, needed=False).load(_path(places))


def remember(places: ModulePlaces, memory: Memory) -> None:
    """Replace the cached values."""
    states.replace_durably(_path(places), msgspec.json.encode(memory))


def force_full_compare(places: ModulePlaces, *, wait: float) -> None:
    """Let the next sync compare the whole tree; call it before the real rsync changes that.

    Recorded as a sync to the applied commit that was interrupted.  Raises `LockedError` if a sync
    runs and does not end within `wait` seconds.
    """
    if not places.state.exists():
        return
    with module_lock(places, wait=wait):
        state = states.load(places.state)
        if state.applied is None or (state.applied, state.filter) in state.attempts:
            return
        attempts = (*state.attempts, (state.applied, state.filter))
        attempted = tuple(commit for commit, _ in attempts)
        filters = tuple(key for _, key in attempts)
        states.save(places.state, replace(state, attempted=attempted, attempted_filters=filters))


def _path(places: ModulePlaces) -> Path:
    return places.folder / _NAME
