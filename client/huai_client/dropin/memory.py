"""What the drop-in remembers of a module between two calls, and tells later syncs of the tree.

A file beside the module's state: which rsync sources are its content, and how many entries it
had.  So a call that finds nothing new opens no repository.  Losing it costs a look there.
"""

from dataclasses import replace
from pathlib import Path

import msgspec

from huai_client import state as states
from huai_client.dropin.figures import Kinds
from huai_client.places import ModulePlaces
from huai_client.run import module_lock

_NAME = "rsync.json"


class Memory(msgspec.Struct, frozen=True):
    """What was true of a commit."""

    commit: str
    sources: tuple[str, ...]
    """The content URLs that the upstream names."""
    entries: tuple[int, int, int]
    """Files, directories, symlinks."""

    @property
    def kinds(self) -> Kinds:
        """The entries."""
        return Kinds(*self.entries)


def recall(places: ModulePlaces, commit: str | None) -> Memory | None:
    """What is remembered of `commit`, the applied one; None: nothing."""
    try:
        found = msgspec.json.decode(_path(places).read_bytes(), type=Memory)
    except (OSError, msgspec.DecodeError):
        return None
    return found if found.commit == commit else None


def remember(places: ModulePlaces, memory: Memory) -> None:
    """Replace what is remembered."""
    states.replace_durably(_path(places), msgspec.json.encode(memory))


def distrust(places: ModulePlaces, *, wait: float) -> None:
    """Before somebody else changes the tree: let the next sync compare all of it.

    Recorded as a sync to the applied commit that was cut.  Raises `LockedError` if a sync runs
    and does not end within `wait` seconds.
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
