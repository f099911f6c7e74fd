"""Carries out one plan: checks space, stages content, records the attempt, changes the tree.

Order of writes: content is staged and verified, and proofs are run, before anything is published;
the attempt is recorded before the first change to the tree; deletions come last.  The next run
finishes an interrupted one: it compares the tree instead of trusting a record of it.
"""

import errno
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from huai_client.diff.files import paths
from huai_client.diff.selection import Selection
from huai_client.filters import Rules
from huai_client.plan.operations import Plan
from huai_client.plan.planner import replace_volatile
from huai_client.plan.prepared import PreparedPlan
from huai_client.plan.protect import Protection
from huai_client.plan.withhold import Withholding, withhold
from huai_client.proofs.proved import Proved
from huai_client.publish.destination import Destination
from huai_client.publish.equal_files import link_equal
from huai_client.publish.executor import FileFacts, execute
from huai_client.publish.report import Report
from huai_client.run.options import NEVER, Deadline
from huai_client.staging import Staging
from huai_client.state.seen import SeenDigests
from huai_client.sync.record import Accepted, ModuleRecord
from huai_client.sync.result import Observer, SyncResult
from huai_client.transfer.content import ContentSource, StagedContent
from huai_client.tree import STAGING, Places, StorageError, Tree
from huai_client.tree.destination import NoSpaceError
from huai_schema.entries import File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import parent

if TYPE_CHECKING:
    from huai_client.proofs.prover import Prover


class PlanRunner:
    """A runner for the plans of one run: it fetches their content, and publishes it."""

    def __init__(
        self,
        content: ContentSource,
        destination: Destination,
        record: ModuleRecord,
        prover: "Prover | None" = None,
        shared: Protection | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        """Open nothing yet.  `prover` checks the pointers of package repositories, if given.

        With `shared` equal files without stated digests become hardlinks until the deadline, except
        those in it.
        """
        self._shared = shared
        self._deadline = deadline
        self._content = content
        self._destination = destination
        self._record = record
        self._prover = prover

    def apply(
        self,
        prepared: PreparedPlan,
        tree: Tree,
        accepted: Accepted,
        observer: Observer,
        seen_digests: SeenDigests | None = None,
    ) -> SyncResult:
        """Stage the content, run proofs, record the attempt, change the tree; return the result.

        Does nothing if the plan is empty and no staging area is left.  Publishes the files that
        arrived, except those that depend on others.  If space is short, deletes the oldest trash.
        After success the staging area is gone; the caller records the commit as applied.  Raises
        the errors of the content source, `DestinationError`, and `StorageError` if the disk fails.
        `seen_digests` gets the digests of files that state none.
        """
        record, destination, content = self._record, self._destination, self._content
        if prepared.summary.nothing and tree.stat(parent(STAGING)) is None:
            return result_of(prepared, record)
        retrying = partial(
            destination.trash.free_space_and_retry, on_message=observer.listener.retried
        )
        retrying(lambda: content.check(prepared, tree))
        record.state = destination.check_case(tree, record.state)
        if record.state.applied is not None and prepared.filter != record.state.filter:
            # If the filter is changed back after an interruption, only this record makes the next
            # run clean up.  A first sync that ends before any change accepts nothing.
            self._save_attempt(prepared, accepted)
        if seen_digests is not None:
            for move in prepared.plan.moves:  # before files for `move.new` arrive
                seen_digests.move(move.old, move.new)
        if self._prover is None and _only_deletes(prepared.plan) and tree.stat(STAGING) is None:
            self._save_attempt(prepared, accepted)
            if seen_digests is not None:
                follow_plan(seen_digests, prepared.plan)
            waiting = Withholding(prepared.territory)
            try:
                report = retrying(partial(_delete, prepared, tree, observer, waiting))
            except NoSpaceError as error:  # no trash is left to delete
                raise error.__cause__ or error from None
            with suppress(OSError):  # made to move files to the trash
                (tree.dest / os.fsdecode(STAGING)).rmdir()
            result = result_of(prepared, record, report)
            if result.exit_code != ExitCode.OK:
                record.forget_attempts(prepared, tree, waiting.paths)
        else:
            result = self._stage_and_publish(prepared, tree, accepted, observer, seen_digests)
        commit, modes = prepared.commit, prepared.modes
        record.state = destination.after_changes(tree, commit, record.state, modes)
        return result

    def _stage_and_publish(
        self,
        prepared: PreparedPlan,
        tree: Tree,
        accepted: Accepted,
        observer: Observer,
        seen_digests: SeenDigests | None,
    ) -> SyncResult:
        """Stage the content, run proofs, record the attempt, and change the tree."""
        record, destination, content = self._record, self._destination, self._content
        listener, synced = observer.listener, record.state.time
        retrying = partial(destination.trash.free_space_and_retry, on_message=listener.retried)
        area = tree.dest / os.fsdecode(STAGING)
        boot, journals = destination.boot(), destination.journals
        with Staging(
            area, boot=boot, finish=tree.finish, journals=journals, seen_digests=seen_digests
        ) as staging:
            staged = retrying(lambda: content.stage(prepared, tree, staging, listener, synced))
            outcome, withholding = staged.outcome, Withholding(prepared.territory)
            for file in outcome.failed:
                withholding.fail(file.path)
            unchanged = {file.path for file in outcome.unchanged}
            plan = replace_volatile(prepared.plan, prepared.volatile, outcome.newer, unchanged)
            plan = withhold(plan, withholding)
            unproved: tuple[Proved, ...] = ()
            if self._prover is not None:
                unproved = self._refused(prepared, plan, tree, staging, observer)
                for refused in unproved:
                    withholding.refuse(refused.repository.top, refused.paths)
                plan = withhold(plan, withholding)
            self._save_attempt(prepared, accepted)
            if seen_digests is not None:
                follow_plan(seen_digests, plan)
            facts = FileFacts(prepared.volatile, staging.incoming.unfinished)
            with listener.phase("publishing"):
                report = execute(plan, tree, staging.places, observer.step, withholding, facts)
            result = replace(result_of(prepared, record, report, staged), unproved=unproved)
            self._share(plan, prepared, seen_digests, tree)
            if result.exit_code == ExitCode.OK:
                staging.remove()
            else:
                record.forget_attempts(prepared, tree, withholding.paths)
        return result

    def _share(
        self, plan: Plan, prepared: PreparedPlan, seen_digests: SeenDigests | None, tree: Tree
    ) -> None:
        """Make hardlinks of equal files that `plan` published, if that is configured."""
        if seen_digests is not None and self._shared is not None:
            selection = Selection(prepared.commit.snapshot, Rules.from_key(prepared.filter))
            with suppress(HuaiError):  # the files stay apart
                link_equal(plan, seen_digests, tree, selection, self._shared, self._deadline)

    def _refused(
        self, prepared: PreparedPlan, plan: Plan, tree: Tree, staging: Staging, observer: Observer
    ) -> tuple[Proved, ...]:
        """Run the proofs, and return the repositories that failed."""
        assert self._prover is not None  # noqa: S101 - see `apply`
        lookup = (tree, staging.locate)
        proofs = self._prover.prove(prepared.commit, plan, lookup, observer.proof_line)
        for proof in proofs:
            observer.proved(proof)
        return tuple(proof for proof in proofs if proof.failure)

    def _save_attempt(self, prepared: PreparedPlan, accepted: Accepted) -> None:
        state = self._destination.before_changes(self._record.state)
        self._record.save_attempt(prepared, accepted, state)


def _only_deletes(plan: Plan) -> bool:
    """Return True for a plan that needs no staging area, for which a full disk may be too full."""
    staged = (stage.fetches or stage.links or stage.symlinks for stage in plan.stages)
    return bool(plan.removals) and not (plan.make or plan.forwards or any(staged))


def _delete(prepared: PreparedPlan, tree: Tree, observer: Observer, waiting: Withholding) -> Report:
    """Carry out a plan of deletions; raises `NoSpaceError` if the trash has no room for a file."""
    try:
        with observer.listener.phase("publishing"):
            return execute(prepared.plan, tree, nothing_staged, observer.step, waiting)
    except StorageError as error:
        if error.code not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise NoSpaceError(error.message, inodes_short=1) from error


def nothing_staged(files: Sequence[File]) -> Places:
    """Refuse: a plan of deletions publishes nothing."""
    raise AssertionError(files)


def result_of(
    prepared: PreparedPlan,
    record: ModuleRecord,
    report: Report | None = None,
    staged: StagedContent | None = None,
) -> SyncResult:
    """Return the result of a run with the plan `prepared`.

    `report`: the changes to the tree; `staged`: the content; None if there was none.
    """
    commit = prepared.commit
    return SyncResult(
        commit.id,
        commit.info.serial,
        commit.time,
        prepared.extent.bytes,
        prepared,
        report,
        staged and staged.outcome,
        staged and staged.reused,
        first_seen=record.state.first_seen(commit.id, time.time()),
    )


def follow_plan(seen_digests: SeenDigests, plan: Plan) -> None:
    """Copy the digests of files that `plan` reuses, and remove those of files that it deletes.

    To be called before the plan is executed: the digest of a file that is not there is not used.
    """
    fetched = {*paths(plan.fetches)} if plan.reuses or plan.clear else set()
    seen_digests.copy(
        (each.source, each.mtime, path)
        for path, each in plan.reuses.items()
        if path in fetched and not each.tree and each.source not in fetched
    )
    for stage in plan.stages:
        seen_digests.remove(each.path for each in stage.links)
        seen_digests.remove(each.path for each in stage.symlinks)
    seen_digests.remove(each.path for each in plan.clear if each.path not in fetched)
    seen_digests.remove(each.path for each in plan.removals)
