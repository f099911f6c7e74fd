"""The records that a run writes: the state of the tree, its commits, delayed deletions.

Order of writes: refs to commits before the state with these, so that git never drops a commit of a
state; an attempt before the first change to the tree; the applied commit once the whole tree is on
the disk, the record for other programs first.  Delayed deletions are recorded before the attempt,
and again after success: those of paths that do not exist have no effect.
"""

import time
from typing import NamedTuple

from msgspec.structs import replace

from huai_client.config.load import Module
from huai_client.config.mirror import Mirror
from huai_client.diff.marks import marks_of
from huai_client.diff.remains import select_needed
from huai_client.diff.selection import Selection
from huai_client.filters import Rules
from huai_client.metadata.repository import Repository
from huai_client.plan.build import applied_selection
from huai_client.plan.pending import follow_moves
from huai_client.plan.prepared import PreparedPlan
from huai_client.state import delayed_record
from huai_client.state import state as states
from huai_client.state.state import State
from huai_client.tree import View
from huai_client.verify.parts import keep_in_step
from huai_schema.codec.applied import AppliedRecord
from huai_schema.paths import RelPath, show

_PATTERN = frozenset("*?[\\")
_LINKS = "safe_links leaves out "


def left_out(selection: Selection, module: Module, unsafe: RelPath | None, former: str) -> str:
    """Describe the part of the commit that the tree lacks; empty if it lacks none.

    `unsafe` is a symlink that `safe_links` leaves out, among those that were compared.  `former` is
    the former description, if not all were compared; it still applies to the other symlinks.

    Looks up each path of `protect`.  A pattern counts as leaving out something, because finding out
    would mean comparing all entries with it.
    """
    if selection.rules:
        return "a filter leaves out a part"
    if unsafe is not None:
        return f"{_LINKS}{show(unsafe)}"
    for pattern in module.protect:
        if not pattern.startswith("/") or _PATTERN.intersection(pattern):
            return f"protect has {pattern!r}, which may leave out a part"
        path = pattern.strip("/").encode("utf-8", "surrogateescape")
        if path and selection.snapshot.entry(RelPath(path)) is not None:
            return f"protect leaves out {pattern}"
    return former if former.startswith(_LINKS) else ""


_ATTEMPTS = 4
"""The number of attempts from which on those are dropped that are not needed."""


class Accepted(NamedTuple):
    """The facts about the upstream that the state records with a commit."""

    serial: int
    """Commits with a lower serial are refused from then on."""
    identity: str
    """The identity of the upstream's module, or empty."""
    valid_until: int = 0
    """The end of the commit's signature, seconds since the epoch; 0 without one."""


class ModuleRecord:
    """The records of one module; the caller holds the module's lock."""

    def __init__(self, mirror: Mirror, repository: Repository, state: State) -> None:
        """Start with `state`, which was saved last."""
        self._mirror = mirror
        self._repository = repository
        self.state = state

    def save(self, state: State) -> None:
        """Save `state` durably, and keep only its commits; raises `StateError` or `StoreError`."""
        self._keep_commits(state, self.state)
        states.save(self._mirror.paths.state, state)
        self._keep_commits(state)
        self.state = state

    def save_attempt(self, prepared: PreparedPlan, accepted: Accepted, state: State) -> None:
        """Record that the tree may be changed to the commit of `prepared` from now on.

        Saves `state` with this attempt, and with serial and identity of `accepted`; first, delayed
        deletions, those that directories to be renamed take along also at their new paths.
        """
        path, moves = self._mirror.paths.delayed, prepared.plan.moves
        if moves or prepared.waiting:
            recorded = delayed_record.load(path)
            deletions = (*prepared.waiting, *follow_moves(recorded, moves), *recorded)
            oldest = {(each.path, each.directory): each for each in deletions}
            delayed_record.save(path, oldest.values(), now=int(time.time()))
        attempts = dict.fromkeys((*state.attempts, (prepared.commit.id, prepared.filter)))
        state = replace(state, serial=accepted.serial, identity=accepted.identity)
        self.save(state.with_attempts(*attempts))

    def forget_attempts(self, prepared: PreparedPlan, tree: View, failed: set[RelPath]) -> None:
        """Drop the attempts before that of `prepared` that need not be compared any more.

        `failed`: paths that were not changed.  Checks that only from four attempts on, if a commit
        is applied, and no path outside a part stayed unchanged.
        """
        state, repository = self.state, self._repository
        if len(state.attempted) < _ATTEMPTS or state.applied is None or prepared.is_part:
            return
        if not all(map(repository.has, (state.applied, *state.attempted))):
            return  # the metadata was fetched again, and no upstream has that commit any more
        own = prepared.commit.id, prepared.filter
        former_attempts = {
            Selection(repository.commit(commit).snapshot, Rules.from_key(key)): (commit, key)
            for commit, key in state.attempts
            if (commit, key) != own
        }
        applied = applied_selection(repository.commit(state.applied), state)
        target = Selection(prepared.commit.snapshot, Rules.from_key(prepared.filter))
        # What is recorded as delayed is deleted by a later run, unless the target names it.
        delayed = failed & {each.path for each in delayed_record.load(self._mirror.paths.delayed)}
        failed = failed - (delayed - target.entries_at(delayed).keys())
        needed = select_needed(tree, failed, applied, [*former_attempts], target)
        self.save(state.with_attempts(*(former_attempts[each] for each in needed), own))

    def save_pending(self, prepared: PreparedPlan) -> None:
        """Replace the record of delayed deletions by those of `prepared`; raises `StateError`."""
        path = self._mirror.paths.delayed
        delayed_record.save(path, prepared.waiting, now=int(time.time()))

    def save_applied(self, prepared: PreparedPlan, state: State) -> None:
        """Record that the tree equals the commit of `prepared`, in all records.

        Saves `state` with marks and `partial`.  Keeps the former commit in the history, and repacks
        the repository.  Raises `StateError` or `StoreError` if that fails.
        """
        if self.state.applied != prepared.commit.id:
            self._repository.keep_history(self.state.applied, self._mirror.config.keep_commits)
        selection = applied_selection(prepared.commit, state)
        former = "" if prepared.whole_tree else self.state.partial or ""
        partial = left_out(selection, self._mirror.config, prepared.unsafe, former)
        # Before the state, because no later run would write it until the next commit.
        self._keep_commits(state, self.state)
        record = AppliedRecord(prepared.commit.id, partial).encode()
        states.replace_durably(self._mirror.paths.applied, record)
        self.save(replace(state, marks=marks_of(selection), partial=partial))
        keep_in_step(self._mirror.paths.verified, prepared.commit.id, selection)
        self._repository.repack()

    def _keep_commits(self, *states_to_keep: State) -> None:
        """Make refs for those commits of these states that are here, and drop those for others."""
        commits = {
            each
            for state in states_to_keep
            for each in (state.applied, state.before, *state.attempted)
        }
        self._repository.keep(each for each in commits if each and self._repository.has(each))


def state_after(
    prepared: PreparedPlan, former: State, accepted: Accepted, *, trash_kept: bool
) -> State:
    """Return the state after the commit was applied now, without attempts and hold.

    `save_applied` adds marks and `partial`.  `trash_kept`: the trash can undo the sync.
    """
    commit, extent, now = prepared.commit, prepared.extent, int(time.time())
    before, key = _way_back(prepared, former) if trash_kept else ("", "")
    return State(
        applied=commit.id,
        serial=accepted.serial,
        time=now,
        total_bytes=extent.bytes,
        committed=commit.time,
        entries=extent.entries,
        filter=prepared.filter,
        before=before,
        before_filter=key,
        trash=former.trash,
        identity=accepted.identity,
        seen=former.first_seen(commit.id, now),
        valid_until=accepted.valid_until,
        relay_urls=commit.relay_urls,
        device=former.device,
    )


def _way_back(prepared: PreparedPlan, former: State) -> tuple[str, str]:
    """Return the commit to which an undo returns, and its filter; both empty without one."""
    if (former.applied, former.filter) == (prepared.commit.id, prepared.filter):
        return former.before, former.before_filter
    return former.applied or "", former.filter
