"""Syncing a module: from the newest commit to a tree that equals it.

Only composes.  Order of writes: the attempt is recorded before the first change to the tree;
content is staged and verified before anything is published; deletions come last; the applied
commit is recorded when all of it is on the disk, after the deletions that wait.  A run that was
interrupted is finished by the next one, which looks at what stands there instead of trusting a
record of it.
"""

import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from huai_client.config import Module
from huai_client.deadline import NEVER, Deadline
from huai_client.diff.attempts import holds_nothing_else
from huai_client.diff.findings import Difference
from huai_client.diff.marks import marks_of
from huai_client.diff.selection import Selection
from huai_client.filters import Rules
from huai_client.metadata.checks import (
    RolledBackError,
    TooLargeError,
    WrongModuleError,
    check_module,
    check_serial,
    check_totals,
    is_rollback,
)
from huai_client.metadata.git import MissingObjectError
from huai_client.metadata.repository import Commit, DamagedRepositoryError, Repository
from huai_client.metadata.upstream import Upstream
from huai_client.plan.build import Planning, applied_selection
from huai_client.plan.prepared import Prepared
from huai_client.plan.volatile import as_arrived
from huai_client.plan.withhold import Withholding, withhold
from huai_client.publish.executor import Report, execute
from huai_client.publish.trash.ground import Ground
from huai_client.run_options import SyncOptions
from huai_client.state import delayed_record
from huai_client.state import state as states
from huai_client.state.paths import ModulePlaces
from huai_client.state.state import State, applied_id
from huai_client.sync.follow import Following
from huai_client.sync.result import Observer, SyncResult
from huai_client.sync.state_after import finished
from huai_client.transfer.stage import Brought
from huai_client.transfer.stage_content import Supply
from huai_client.transfer.staging import Staging
from huai_client.tree import STAGING, Staged, Tree, View
from huai_client.verify.follow import keep_in_step
from huai_schema.entries import File
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.paths import RelPath, parent

_ATTEMPTS = 4
"""So many are kept without asking whether they are needed."""


class Sync:
    """One run for one module; the caller holds the module's lock."""

    def __init__(
        self,
        name: str,
        module: Module,
        places: ModulePlaces,
        options: SyncOptions,
        upstream: Upstream,
    ) -> None:
        """Read the state; the tree is not touched yet."""
        self._name = module.upstream_name or name
        self._module = module
        self._places = places
        self._options = options
        self._upstream = upstream
        self._state = states.load(places.state)
        self._supply = Supply(module, upstream)
        self._repository = Repository(places.repository, timeout=module.timeout)
        self._planning = Planning(module, places, options, self._repository)
        self._ground = Ground(module)

    def repair(self, damage: list[Difference], observer: Observer) -> SyncResult:
        """Bring the paths in `damage` back to what the applied commit says."""
        commit = self._applied_commit()
        before = self._state
        with self._ground.tree(self._state) as tree:
            prepared = self._planning.repair(tree, commit, before, damage)
            observer.planned(prepared)
            result = self._carry_out(prepared, tree, observer)
        if result.exit_code == ExitCode.OK:
            self._save(replace(before, trash=self._state.trash))
        return result

    def delete_due(self, observer: Observer) -> SyncResult:
        """Delete what has waited long enough; the tree is at the newest commit otherwise."""
        commit = self._applied_commit()
        with self._ground.tree(self._state) as tree:
            prepared = self._planning.due(tree, commit, self._state)
            observer.planned(prepared)
            report = execute(prepared.plan, tree, _nothing_staged, observer.step)
            self._state = self._ground.settled(tree, commit, self._state, prepared.modes)
        result = self._result(prepared, report, None)
        if result.exit_code == ExitCode.OK:
            self._save_waiting(prepared)
            self._save(self._state)
        return result

    def prepare(self) -> Prepared:
        """Fetch the newest metadata and plan; changes nothing in the tree."""
        with View(Path(self._module.dest), owners=self._module.owners) as view:
            return self._prepare(view)

    def run(self, observer: Observer) -> SyncResult:
        """Bring the tree to the newest commit."""
        following = Following()
        while True:
            result = self._round(observer)
            if not self._goes_on(result, following):
                nothing_at = self._nothing_at(result)
                return replace(result, plans=following.plans, nothing_at=nothing_at)

    def _round(self, observer: Observer) -> SyncResult:
        with self._ground.tree(self._state) as tree:
            prepared = self._prepare(tree)
            observer.planned(prepared)
            result = self._carry_out(prepared, tree, observer)
        if result.exit_code == ExitCode.OK and self._options.only is None:
            self._save_waiting(prepared)
            self._finish(prepared)
        return result

    def _forget_attempts(self, prepared: Prepared, tree: Tree, failed: set[RelPath]) -> None:
        """Keep no attempts but this one, if the tree holds nothing of the others any more."""
        state = self._state
        if len(state.attempted) < _ATTEMPTS or state.applied is None or prepared.waiting:
            return
        applied = applied_selection(self._repository.commit(state.applied), state)
        rules = Rules.from_key(prepared.filter)
        wanted = Selection(prepared.commit.snapshot, rules)
        if holds_nothing_else(tree, failed, applied, wanted):
            only, key = (prepared.commit.id,), (prepared.filter,)
            self._save(replace(state, attempted=only, attempted_filters=key))

    def _goes_on(self, result: SyncResult, following: Following) -> bool:
        """Whether another plan may bring what this one did not; all that could be is published."""
        if self._upstream.deadline.over:
            return False
        if result.report and result.report.unmoved and self._planning.moves:
            self._planning.moves = False
            return True
        outcome = result.outcome
        if outcome is None or outcome.complete:
            return False
        failed = len(outcome.failed) - len(outcome.late)
        return following.has_moved_on(failed, lambda: self._is_old(result.commit))

    def _prepare(self, view: View) -> Prepared:
        try:
            return self._prepared(view)
        except (DamagedRepositoryError, MissingObjectError) as error:
            # An upstream that sends half of it must not cost us what we have.
            applied = self._state.applied
            sound = isinstance(error, MissingObjectError)
            if sound and applied is not None and self._repository.has(applied):
                raise
        self._repository.start_over()
        return self._prepared(view)

    def _prepared(self, view: View) -> Prepared:
        metadata, deadline = self._upstream.metadata, self._upstream.deadline
        fetch = partial(self._repository.fetch, deadline=deadline)
        try:
            commit = metadata.first_answer(fetch, self._is_behind)
            check_module(commit, self._name)
            if not self._options.accept_rollback:
                check_serial(commit, self._state)
            self._check_totals(commit)
            deadline.check("the metadata are here, and nothing was changed")
            with self._repository.until(self._planning_ends):
                prepared = self._planning.update(view, commit, self._state)
        except (FormatError, WrongModuleError, RolledBackError, TooLargeError):
            self._repository.withdraw()
            raise
        except HuaiError:
            # Fetched in vain each time, they would pile up: no good run is there to tidy up.
            self._repository.repack()
            raise
        self._repository.accept()
        return prepared

    @property
    def _planning_ends(self) -> Deadline:
        """A tree that is compared as a whole is compared to its end: else it never would be."""
        return NEVER if self._planning.walks(self._state) else self._upstream.deadline

    def _check_totals(self, commit: Commit) -> None:
        """Before anything is read below the commit."""
        applied = self._state.applied
        known = not self._options.adopt and applied and self._repository.has(applied)
        before = self._repository.commit(applied).info.totals if known and applied else None
        check_totals(commit, self._module, before)

    def _applied_commit(self) -> Commit:
        return self._repository.commit(applied_id(self._state, self._name))

    def _carry_out(self, prepared: Prepared, tree: Tree, observer: Observer) -> SyncResult:
        """Transfer, and publish what came and depends on nothing that did not."""
        commit, plan = prepared.commit, prepared.plan
        if prepared.summary.nothing and tree.stat(parent(STAGING)) is None:
            return self._result(prepared, None, None)
        listener = observer.listener
        check = partial(self._supply.check, prepared, tree)
        self._ground.with_room(check, listener.retried)
        if self._state.applied is not None and prepared.filter != self._state.filter:
            # If the filter goes back after a cut, nothing else tells that a run has to tidy up.
            # A first sync that is interrupted before it changes anything has accepted nothing yet.
            self._record_attempt(prepared)
        with Staging(tree.dest / os.fsdecode(STAGING)) as staging:
            synced = self._state.time
            bring = partial(self._supply.bring, prepared, tree, staging, listener, synced)
            brought = self._ground.with_room(bring, listener.retried)
            outcome = brought.outcome
            withholding = Withholding(prepared.territory)
            for file in outcome.failed:
                withholding.fail(file.path)
            kept = {file.path for file in outcome.kept}
            plan = as_arrived(plan, prepared.volatile, outcome.newer, kept)
            plan = withhold(plan, withholding)
            self._record_attempt(prepared)
            report = execute(plan, tree, staging.locate, observer.step, withholding)
            result = self._result(prepared, report, brought)
            if result.exit_code == ExitCode.OK:
                staging.remove()
            else:
                self._forget_attempts(prepared, tree, withholding.paths)
        self._state = self._ground.settled(tree, commit, self._state, prepared.modes)
        return result

    def _record_attempt(self, prepared: Prepared) -> None:
        """From here on the tree may be anything between the commits that are named."""
        state, commit = self._state, prepared.commit
        attempts = dict.fromkeys((*state.attempts, (commit.id, prepared.filter)))
        changed = replace(
            state,
            attempted=tuple(each for each, _ in attempts),
            attempted_filters=tuple(key for _, key in attempts),
            serial=self._accepted_serial(commit),
            identity=self._identity(commit),
        )
        self._save(self._ground.begun(changed))

    def _nothing_at(self, result: SyncResult) -> tuple[str, ...]:
        """The content URLs, if they have none of what the newest commit names: another tree.

        One file alone may well have vanished, from a tree that had others when it was synced.
        """
        outcome, reused = result.outcome, result.reused
        if outcome is None or not outcome.missing or outcome.failed != outcome.missing:
            return ()
        came = len(outcome.arrived) - (reused.files if reused else 0)
        one_of_many = len(outcome.missing) == 1 and self._state.applied is not None
        if came > 0 or one_of_many or result.prepared is None or self._is_old(result.commit):
            return ()
        return tuple(map(str, self._supply.urls(result.prepared.commit)))

    def _is_old(self, commit: str) -> bool:
        newest = self._repository.newest_commit
        return self._upstream.metadata.first_answer(newest) != commit

    def _is_behind(self, commit: Commit) -> bool:
        """Whether another upstream may know better."""
        return not self._options.accept_rollback and is_rollback(commit, self._state)

    def _save_waiting(self, prepared: Prepared) -> None:
        delayed_record.save(self._places.delayed, prepared.waiting, now=int(time.time()))

    def _finish(self, prepared: Prepared) -> None:
        if self._state.applied != prepared.commit.id:
            self._repository.keep_history(self._state.applied, self._module.keep_commits)
        state = self._finished(prepared)
        selection = applied_selection(prepared.commit, state)
        self._save(replace(state, marks=marks_of(selection)))
        keep_in_step(self._places.verified, prepared.commit.id, selection)
        self._repository.repack()

    def _finished(self, prepared: Prepared) -> State:
        commit, keeps = prepared.commit, self._ground.keeps
        serial, identity = self._accepted_serial(commit), self._identity(commit)
        return finished(prepared, self._state, serial=serial, identity=identity, keeps=keeps)

    def _accepted_serial(self, commit: Commit) -> int:
        serial = commit.info.serial
        return serial if self._options.accept_rollback else max(serial, self._state.serial)

    def _identity(self, commit: Commit) -> str:
        """Of the module that is accepted with a commit."""
        return commit.descriptor.identity

    def _save(self, state: State) -> None:
        # The refs first: a state that names a commit must never lack it.
        self._keep(state, self._state)
        states.save(self._places.state, state)
        self._keep(state)
        self._state = state

    def _keep(self, *named: State) -> None:
        commits = {
            each
            for state in named
            for each in (state.applied, state.before, *state.attempted)
            if each
        }
        self._repository.keep(commit for commit in commits if self._repository.has(commit))

    def _result(
        self, prepared: Prepared, report: Report | None, brought: Brought | None
    ) -> SyncResult:
        info = prepared.commit.info
        return SyncResult(
            prepared.commit.id,
            info.serial,
            prepared.commit.time,
            prepared.extent.bytes,
            prepared,
            report,
            brought and brought.outcome,
            brought and brought.reused,
            seen=self._state.first_seen(prepared.commit.id, time.time()),
        )


def _nothing_staged(file: File) -> Staged:
    raise AssertionError(file)  # a plan of deletions publishes nothing
