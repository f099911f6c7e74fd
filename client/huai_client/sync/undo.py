"""Undoes the last sync: brings the tree back to the commit before it, with files from the trash.

An undo is planned, applied and recorded like a sync, with another content source; the next run
finishes an interrupted one.  No upstream is needed.  Rule to keep: all content is found on this
machine before the first change.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from huai_client.config.mirror import Mirror
from huai_client.diff.moves import find_moves
from huai_client.diff.selection import Selection
from huai_client.filters import Rules
from huai_client.metadata.repository import Repository
from huai_client.plan.build import PlanBuilder
from huai_client.plan.prepared import PreparedPlan, summarize
from huai_client.publish.destination import Destination
from huai_client.publish.trash import TRASH, restore
from huai_client.run.options import SyncOptions
from huai_client.staging import Staging
from huai_client.state.state import State, load
from huai_client.sync.apply import PlanRunner
from huai_client.sync.record import Accepted, ModuleRecord, state_after
from huai_client.sync.result import Observer, SyncResult
from huai_client.transfer.content import StagedContent
from huai_client.transfer.fetch import Outcome
from huai_client.transfer.listener import Listener
from huai_client.transfer.local import LocalContent, ReusePolicy
from huai_client.tree import Tree, View
from huai_native import _native
from huai_program.humanize import counted
from huai_schema.entries import File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import show

_ALWAYS = (1 << 63) - 1
_MISSING = ("file that was there before is", "files that were there before are")
_SHOWN = 3


class NothingToUndoError(HuaiError):
    """An error because the last sync cannot be undone."""

    exit_code = ExitCode.DIFFERS


class NotUndoableError(HuaiError):
    """An error because files that an undo needs are missing in the trash."""

    exit_code = ExitCode.PARTIAL

    def __init__(self, missing: Sequence[File]) -> None:
        """Name some of `missing`, the files whose content is not on this machine."""
        first = ", ".join(show(file.path) for file in missing[:_SHOWN])
        super().__init__(
            f"{counted(len(missing), *_MISSING)} not in the trash any more, for "
            f"example {first}; nothing was changed",
            hint="the files that are left are in .~tmp~/huai-trash; after an interrupted undo "
            "`huai-client sync --unhold` goes to the newest commit instead",
        )


class TrashContent:
    """A content source of files on this machine alone."""

    def check(self, prepared: PreparedPlan, tree: Tree) -> None:
        """Accept: no upstream is needed, and copying fails if space is short."""

    def stage(
        self,
        prepared: PreparedPlan,
        tree: Tree,
        staging: Staging,
        _listener: Listener,
        _synced: int,
    ) -> StagedContent:
        """Stage the content from this machine.

        If some is missing, removes the staging area and raises `NotUndoableError`.  Raises
        `StorageError` for a full disk.
        """
        files = prepared.plan.fetches
        staging.prune(files)
        staging.recover(files)
        reuses = prepared.plan.reuses
        with LocalContent(tree, staging, ReusePolicy(_ALWAYS, hardlink=False)) as local:
            reused = local.stage_local(files, reuses)
            _require(reused.absent, staging)
            local.copy_twins(reused.twins, files, reuses)
            _require(reused.twins, staging)
            return StagedContent(Outcome(files, [], [], 0), local.reused())


def _require(files: Sequence[File], staging: Staging) -> None:
    """Unless all `files` are staged, remove the staging area and raise `NotUndoableError`."""
    absent = [file for file in files if not staging.ready(file)]
    if absent:
        staging.remove()
        raise NotUndoableError(absent)


class _Target(NamedTuple):
    commit: str
    filter: str
    undone: str
    """The commit that is undone."""


class Undo:
    """An undo of one module; the caller holds the module's lock."""

    def __init__(self, mirror: Mirror) -> None:
        """Find the commit to return to; raises `NothingToUndoError` without it or its metadata.

        No limit on deletions applies: the administrator knows which files the sync added.
        """
        everything = tuple(f"{directory}={_ALWAYS}" for directory in mirror.config.max_delete_in)
        options = SyncOptions(
            max_delete=str(_ALWAYS), accept_rollback=True, max_delete_in=everything
        )
        self._mirror = mirror
        state = load(mirror.paths.state)
        self._target = _target(mirror.name, state)
        self._repository = Repository(mirror.paths.repository, timeout=mirror.config.timeout)
        state = replace(state, held=self._target.undone)
        if self._target[:2] == (state.applied, state.filter):
            # If this is interrupted, the next run must not undo the last sync instead.
            state = replace(state, before="", before_filter="")
        self._record = ModuleRecord(mirror, self._repository, state)
        self._builder = PlanBuilder(mirror, options, self._repository)
        self._destination = Destination(mirror)
        self._runner = PlanRunner(TrashContent(), self._destination, self._record)
        if not self._repository.has(self._target.commit):
            raise NothingToUndoError(
                f"{mirror.name}: the metadata of the commit before the last sync are gone",
                hint="that sync cannot be undone any more; the next one goes to the newest commit",
            )

    def prepare(self) -> PreparedPlan:
        """Return the plan; change nothing.  Raises `NotUndoableError` if files are missing."""
        with View(self._mirror.dest, owners=self._mirror.config.owners) as view:
            return self._prepare(view)

    def run(self, observer: Observer) -> SyncResult:
        """Bring the tree back, and put it on hold; restored files leave the trash after success.

        Raises `NotUndoableError`, before the first change, if files are missing.
        """
        result = self._round(observer)
        if result.report and result.report.unmoved and self._builder.moves:
            self._builder.moves = False
            result = self._round(observer)
        if result.exit_code == ExitCode.OK and result.prepared:
            for reuse in result.prepared.plan.reuses.values():
                if reuse.source.startswith(TRASH):
                    self._destination.trash.discard(reuse.source)
        return result

    def _round(self, observer: Observer) -> SyncResult:
        """Plan and apply once; if all went well, record the former commit as applied.

        The undone one is recorded as `held`.  Raises `NotUndoableError`, before the first change,
        if files are missing.
        """
        record, destination = self._record, self._destination
        with destination.open(record.state) as tree:
            prepared = self._prepare(tree)
            observer.planned(prepared)
            # The identity stays that of the present commit, even if the former one had another.
            accepted = Accepted(prepared.commit.info.serial, record.state.identity)
            result = self._runner.apply(prepared, tree, accepted, observer)
        if result.exit_code == ExitCode.OK:
            record.save_pending(prepared)
            state = state_after(prepared, record.state, accepted, trash_kept=destination.keeps)
            state = replace(state, before="", before_filter="", held=record.state.held)
            record.save_applied(prepared, state)
        return result

    def _prepare(self, view: View) -> PreparedPlan:
        """Plan the way back, with files of the trash.

        Raises `NotUndoableError` if it lacks some.
        """
        commit, state = self._repository.commit(self._target.commit), self._record.state
        rules = Rules.from_key(self._target.filter)
        prepared = self._builder.update(view, commit, state, rules)
        # Not only those of the plan: at an old path a symlink may be in the way.
        target, past = Selection(commit.snapshot, rules), self._builder.past_selections(state)
        former = [each for each in (past[0], *past[1]) if each is not None]
        renames = [_native.Renames(find_moves(each, target)) for each in former]
        plan, missing = restore(prepared.plan, self._destination.trash.batches(), view, renames)
        if missing:
            raise NotUndoableError(missing)
        summary = summarize(plan)._replace(delayed=prepared.summary.delayed)
        return prepared._replace(plan=plan, summary=summary)


def _target(name: str, state: State) -> _Target:
    """Return the commit to go back to; raises `NothingToUndoError` without one."""
    undoes_applied = state.before and state.held == state.applied
    if state.applied and state.attempted and not undoes_applied:
        # An interrupted sync, or the undo of one.
        return _Target(state.applied, state.filter, state.held or state.attempted[-1])
    if not state.before or not state.applied:
        raise NothingToUndoError(
            f"{name}: no sync can be undone: the last one was undone already, or the trash was off",
            hint='with trash = "7d" in client.toml the next sync can be undone',
        )
    return _Target(state.before, state.before_filter, state.applied)
