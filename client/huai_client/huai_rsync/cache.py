"""The cache of each module, and a mark for syncs after the real rsync.

A file next to the module's state: the content URLs, the number of entries, and the time at which
the whole tree was last compared.  So a call that finds nothing new opens the repository only if the
file is lost.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from huai_client.huai_rsync.stats import Kinds
from huai_client.state import state as states
from huai_client.state.history import Number
from huai_client.state.paths import ModulePlaces
from huai_client.state.state import module_lock
from huai_program.record_file import RecordFile

if TYPE_CHECKING:
    from huai_client.filters import Rules
    from huai_client.plan.prepared import PreparedPlan

_NAME = "rsync.json"


class Memory(msgspec.Struct, frozen=True):
    """The facts about one commit that calls of `huai-rsync` remember."""

    commit: str
    sources: tuple[str, ...]
    """The content URLs that the upstream names."""
    entries: tuple[Number, Number, Number]
    """The numbers of files, directories and symlinks; all zero if not counted."""
    compared: Number = 0
    """The start of the last call that compared the whole tree, seconds since the epoch, or 0."""

    @property
    def kinds(self) -> Kinds | None:
        """The numbers of entries; None if not counted."""
        return Kinds(*self.entries) if any(self.entries) else None


def recall(places: ModulePlaces, commit: str | None) -> Memory | None:
    """Return the cached values; None unless they are for `commit`, the applied one."""
    memory = remembered(places)
    return memory if memory and memory.commit == commit else None


def remembered(places: ModulePlaces) -> Memory | None:
    """Return the cached values, for any commit; None if they are missing or damaged."""
    return RecordFile(Memory, needed=False).load(_path(places))


def remember(places: ModulePlaces, memory: Memory) -> None:
    """Replace the cached values in their file, durably; raises `StateError` if that fails."""
    states.replace_durably(_path(places), msgspec.json.encode(memory))


def force_full_compare(places: ModulePlaces, *, wait: float) -> None:
    """Make the next sync compare the whole tree; call this before the real rsync changes it.

    Records an interrupted sync to the applied commit, if one is applied.  Raises `LockedError` if a
    running sync does not end within `wait` seconds, `StateError` if the state cannot be read or
    written.
    """
    if not places.state.exists():
        return
    with module_lock(places, wait=wait):
        state = states.load(places.state)
        if state.applied is None or (state.applied, state.filter) in state.attempts:
            return
        attempts = (*state.attempts, (state.applied, state.filter))
        states.save(places.state, state.with_attempts(*attempts))


def _path(places: ModulePlaces) -> Path:
    return places.folder / _NAME


def entries_of(prepared: "PreparedPlan", places: ModulePlaces, *, count: bool) -> Kinds:
    """Return the numbers of entries that a plan selects; zeros with a filter, unless `count`."""
    from huai_client.filters import Rules  # not needed by a poll

    rules = Rules.from_key(prepared.filter)
    if not rules:
        totals = prepared.commit.info.totals
        return Kinds(totals.files, totals.directories, totals.symlinks)
    return _selected(prepared, places, rules) if count else Kinds()


def _selected(prepared: "PreparedPlan", places: ModulePlaces, rules: "Rules") -> Kinds:
    """Count the selected entries: by the change since the cached counts, if there are any."""
    from huai_client.diff.selection import Selection, diff_selections
    from huai_client.metadata.repository import Repository
    from huai_client.state.state import load
    from huai_schema.diff.changes import Change

    now = Selection(prepared.commit.snapshot, rules)
    state, repository = load(places.state), Repository(places.repository)
    memory = recall(places, state.applied)
    if not memory or not memory.kinds or state.filter != prepared.filter:
        return Kinds.of(now.entries())
    if state.applied is None or not repository.has(state.applied):
        return Kinds.of(now.entries())
    past = Selection(repository.commit(state.applied).snapshot, rules)
    changes = [step for step in diff_selections(past, now) if isinstance(step, Change)]
    added, removed = Kinds.of(step.new for step in changes), Kinds.of(step.old for step in changes)
    counts = zip(memory.entries, added, removed, strict=True)
    return Kinds(*(before + more - fewer for before, more, fewer in counts))
