"""The commands for one module, under its lock: the order of their steps, and their exit codes.

Prints nothing: it calls a `RunReport`.  Modules that load slowly are imported when needed.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from huai_client.config.hooks import NO_HOOKS
from huai_client.config.mirror import Mirror
from huai_client.config.tree_settings import changed_keys
from huai_client.diff.active_filter import has_same_settings
from huai_client.diff.marks import tree_exists
from huai_client.metadata.known_heads import KnownHeads
from huai_client.metadata.upstream import Upstream, is_up_to_date
from huai_client.run.ages import overdue, why_expired, why_out_of_date
from huai_client.run.options import SyncOptions
from huai_client.state import delayed_record
from huai_client.state import state as states
from huai_client.state.state import module_lock
from huai_client.sync.run_log import RunLog
from huai_program.durations import seconds
from huai_schema.errors import ExitCode, HuaiError

if TYPE_CHECKING:
    from huai_client.diff.candidate import Difference
    from huai_client.hooks.changes import Changes
    from huai_client.hooks.hooks import HookRun
    from huai_client.plan.prepared import PreparedPlan
    from huai_client.sync.attest import AttestOutcome
    from huai_client.sync.result import Observer, SyncResult
    from huai_client.sync.sync import Sync
    from huai_client.sync.undo import Undo
    from huai_client.verify.queue import VerifyRequest
    from huai_client.verify.run import VerifyRun

Guard = Callable[[Callable[[], ExitCode]], ExitCode]
"""A function that calls its argument, and returns its exit code or raises its error."""


class RunReport(Protocol):
    """A reporter for the events of a run."""

    def observer(self) -> "Observer":
        """Return the observer of the transfer and of the changes to the tree."""

    def upstream(self, message: str) -> None:
        """Report that an upstream did not respond, or that another one does."""

    def half_changed(self, file: str) -> None:
        """Report a file that an interrupted run left half changed in place."""

    def full_comparison(self, state: states.State, changed: tuple[str, ...]) -> None:
        """Report that the whole tree is compared, because of `changed`, keys of client.toml."""

    def on_hold(self, state: states.State) -> None:
        """Report that the tree is on hold since an undo."""

    def up_to_date(self, state: states.State, stale: str) -> None:
        """Report that nothing is new or the tree held; `stale`: why that may be wrong, or empty."""

    def concluded(self, result: "SyncResult", stale: str) -> None:
        """Report the end of a run that planned; `stale` as for `up_to_date`."""

    def hook_line(self, hook: str, line: str) -> None:
        """Report a line that a hook printed."""

    def hook_ended(self, run: "HookRun") -> None:
        """Report the end of a hook."""

    def attested(self, outcome: "AttestOutcome") -> None:
        """Report an attestation of the tree."""

    def not_attested(self, error: HuaiError) -> None:
        """Report that the tree could not be attested."""

    def verifying(self, run: "VerifyRun") -> AbstractContextManager[object]:
        """Return a context manager that shows the progress of `run`."""

    def difference(self, difference: "Difference") -> None:
        """Report a difference between the tree and the applied commit."""

    def verified(self, run: "VerifyRun", request: "VerifyRequest", differences: int) -> None:
        """Report the end of a comparison."""

    def unreadable(self, paths: "list[Difference]") -> None:
        """Report the paths that could not be read, and were not repaired."""


class Run:
    """The commands of one module."""

    def __init__(
        self,
        mirror: Mirror,
        report: RunReport,
        approve: "Callable[[PreparedPlan], None] | None" = None,
        guard: Guard | None = None,
    ) -> None:
        """Call `approve` with each plan before it is shown; it may raise to refuse the plan.

        `guard` calls each sync, under the lock.
        """
        self._mirror = mirror
        self._module = mirror.config
        self._paths = mirror.paths
        self._report = report
        self._approve = approve or (lambda _: None)
        self._guard = guard
        self._changes: Changes | None = None
        """The changes for hooks; None without hooks."""

    def sync(self, options: SyncOptions, *, wait: float) -> ExitCode:
        """Bring the tree to the newest commit, with hooks and an attestation; return the exit code.

        Like the other methods, waits at most `wait` seconds for the lock of the module, then raises
        `LockedError`.
        """
        with module_lock(self._paths, wait=wait):
            recorded = partial(self._recorded_sync, options)
            return self._guard(recorded) if self._guard else recorded()

    def undo(self, *, wait: float) -> ExitCode:
        """Undo the last sync, and hold the tree there; return the exit code.

        Raises as `plan_undo`.
        """
        with module_lock(self._paths, wait=wait), RunLog(self._paths, "undo") as run_log:
            run_log.started(states.load(self._paths.state))
            return self._undo_recorded(run_log)

    def plan(self, options: SyncOptions, *, wait: float) -> "PreparedPlan":
        """Fetch the newest metadata, and return the plan of a sync; `approve` may refuse it.

        Waits for the lock, and raises `LockedError`, as `sync` does.
        """
        with module_lock(self._paths, wait=wait):
            prepared = self._sync(options).prepare()
        self._approve(prepared)
        return prepared

    def plan_undo(self, *, wait: float) -> "PreparedPlan":
        """Return the plan of an undo; raises `NothingToUndoError` or `NotUndoableError`.

        Waits for the lock as `sync` does.
        """
        with module_lock(self._paths, wait=wait):
            return self._undo().prepare()

    def verify(self, options: SyncOptions, request: "VerifyRequest", *, wait: float) -> ExitCode:
        """Compare the tree with the applied commit, repair it on request; return the exit code.

        `DIFFERS` if a difference is left, or a part that an engine could not compare; or the code
        of a failed repair.  Waits for the lock of `verify`, and to repair for the module's.
        """
        from huai_client.verify.run import VerifyRun

        differences, damage = 0, []

        def collect(difference: "Difference") -> None:
            """Report a difference, and keep it for a repair."""
            nonlocal differences
            differences += 1
            if request.repair:
                damage.append(difference)
            self._report.difference(difference)

        lock = module_lock(self._paths, wait=wait, verifying=True)
        with lock, RunLog(self._paths, "verify") as run_log:
            run_log.started(states.load(self._paths.state))
            verifying = VerifyRun(self._mirror, request, collect)
            with self._report.verifying(verifying):
                verifying.run(wait=wait)
            self._report.verified(verifying, request, differences)
            run_log.verified(differences, content=request.content)
            code = ExitCode.DIFFERS if differences else ExitCode.OK
            if damage:
                run_log.set_kind("repair")
                with module_lock(self._paths, wait=wait):
                    self._finish_patches()
                    sync = self._sync(options)
                    result = sync.repair(damage, self._observer(run_log))
                    code = self._conclude(result, run_log)
                if code == ExitCode.OK and result.prepared is not None:
                    unreadable = _unreadable(damage, result.prepared)
                    verifying.repaired([each.path for each in unreadable])
                    if unreadable:
                        self._report.unreadable(unreadable)
                        return run_log.unrepaired(len(unreadable))
            if code == ExitCode.OK and verifying.failed:
                return run_log.uncompared(verifying.failed)
            return code

    # A sync, from the outside in

    def _recorded_sync(self, options: SyncOptions) -> ExitCode:
        """Sync with hooks, and record the run; the history gets no line if nothing was new.

        `unhold` ends a hold first, even if the run fails later.
        """
        with RunLog(self._paths, "sync") as run_log:
            state = self._state(unhold=options.unhold)
            run_log.started(state)
            if self._module.hooks == NO_HOOKS:
                return self._attested_sync(options, run_log, state)
            return self._hooked_sync(options, run_log, state)

    def _hooked_sync(self, options: SyncOptions, run_log: RunLog, state: states.State) -> ExitCode:
        """Sync between the hooks; those after it are run after a failure, too.

        If one before it fails, its error is raised without a sync.  The failure of one after it is
        raised only if the sync was good.
        """
        from huai_client.hooks.hooks import HookRunner

        report = self._report
        hooks = HookRunner(self._mirror, run_log.record, report.hook_line, report.hook_ended)
        try:
            hooks.before()
            self._changes = hooks.changes
            code = self._attested_sync(options, run_log, state)
        except Exception as error:
            run_log.failed(error)
            hooks.after(run_log.record)
            raise
        failed = hooks.after(run_log.record)
        if failed and code == ExitCode.OK:
            raise failed
        return code

    def _attested_sync(
        self, options: SyncOptions, run_log: RunLog, state: states.State
    ) -> ExitCode:
        """Sync; attest the tree if that is configured, all went well, and `only` is not set."""
        code = self._synced(options, run_log, state)
        if code == ExitCode.OK and self._module.attest.on and options.only is None:
            self._attest()
        return code

    def _attest(self) -> None:
        """Attest the tree, unless it is on hold or incomplete; a failure is only reported."""
        from huai_client.sync.attest import attest

        state = states.load(self._paths.state)
        if state.held or state.attempted or not state.applied:
            return
        try:
            outcome = attest(self._mirror, state, int(time.time()))
        except HuaiError as error:
            self._report.not_attested(error)
        else:
            if outcome is not None:
                self._report.attested(outcome)

    def _synced(self, options: SyncOptions, run_log: RunLog, state: states.State) -> ExitCode:
        """Finish patches and an undo; or poll, then sync or delete what is due; return the code."""
        self._finish_patches()
        options.deadline.check("it was not begun")
        upstream = self._upstream(options)
        if state.held and state.attempted:
            run_log.set_kind("undo")
            return self._undo_recorded(run_log)
        timeout = options.deadline.bound(self._module.timeout)
        same = not (options.adopt or options.compare) and has_same_settings(self._mirror, state)
        self._report_changed_keys(options, state)
        same = same and tree_exists(self._module.dest, state)
        heads = KnownHeads(self._paths.repository)
        poll = partial(is_up_to_date, timeout=timeout, deadline=upstream.deadline, heads=heads)
        if state.held or (same and poll(state, upstream.metadata)):
            if options.only is not None or not self._anything_due(state):
                run_log.up_to_date(state)
                return self._up_to_date(state)
            run_log.set_kind("deletions")
            result = self._sync(options, upstream).delete_due(self._observer(run_log))
        else:
            result = self._sync(options, upstream).run(self._observer(run_log), self._approve)
        return self._conclude(result, run_log)

    def _undo_recorded(self, run_log: RunLog) -> ExitCode:
        """Finish patches, undo the last sync, record and report it; return the exit code."""
        self._finish_patches()
        result = self._undo().run(self._observer(run_log))
        code = self._conclude(result, run_log)
        state = states.load(self._paths.state)
        if state.held:
            self._report.on_hold(state)
        return code

    # What a run needs

    def _state(self, *, unhold: bool) -> states.State:
        """Return the recorded state; `unhold` ends a hold first, even if the run fails later."""
        state = states.load(self._paths.state)
        if unhold and state.held:
            state = replace(state, held="")
            states.save(self._paths.state, state)
        return state

    def _finish_patches(self) -> None:
        """Finish an interrupted run's changes in place; report files that stay half changed."""
        if not self._paths.patches.exists():
            return
        from huai_client.staging import Journals, finish_patches

        for file in finish_patches(Journals(self._paths.patches, self._mirror.dest)):
            self._report.half_changed(file)

    def _upstream(self, options: SyncOptions) -> Upstream:
        """Return the upstream of the module; nothing is requested yet."""
        return Upstream.of(
            self._mirror,
            deadline=options.deadline,
            first_only=options.accept_rollback,  # only the first upstream may roll back
            on_message=self._report.upstream,
        )

    def _sync(self, options: SyncOptions, upstream: Upstream | None = None) -> "Sync":
        from huai_client.sync.sync import Sync

        return Sync(self._mirror, options, upstream or self._upstream(options))

    def _undo(self) -> "Undo":
        from huai_client.sync.undo import Undo

        return Undo(self._mirror)

    def _observer(self, run_log: RunLog) -> "Observer":
        """Return the report's observer, which also logs plans and lists changes for hooks."""
        observer, changes = self._report.observer(), self._changes

        def planned(prepared: "PreparedPlan") -> None:
            """Record the plan, and report it."""
            run_log.planned(prepared)
            if changes:
                changes.record_plan(prepared)
            observer.planned(prepared)

        step = changes.record_step if changes else observer.step
        return observer._replace(planned=planned, step=step)

    # Results

    def _report_changed_keys(self, options: SyncOptions, state: states.State) -> None:
        """Report that the whole tree is compared, if that is because of changed settings alone."""
        if state.applied is None or state.held or options.adopt or options.compare:
            return
        if changed := changed_keys(self._module, *state.settings):
            self._report.full_comparison(state, tuple(changed))

    def _anything_due(self, state: states.State) -> bool:
        """Return True if delayed deletions or the trash are due."""
        now, head = int(time.time()), delayed_record.head(self._paths.delayed)
        due = head.due(seconds(self._module.delete_after), now)
        return due or overdue(state.trash, self._module.trash, now)

    def _up_to_date(self, state: states.State) -> ExitCode:
        """Report that nothing is new; return `STALE` if a required signature expired, else `OK`."""
        stale = why_out_of_date(
            self._module, time.time(), state.committed, state.seen or state.time, state.valid_until
        )
        self._report.up_to_date(state, stale)
        unproved = state.valid_until and not state.held and self._module.verify == "require"
        return (
            ExitCode.STALE
            if unproved and why_expired(state.valid_until, time.time())
            else ExitCode.OK
        )

    def _conclude(self, result: "SyncResult", run_log: RunLog) -> ExitCode:
        """Record and report the result; return its exit code."""
        from huai_client.sync.result import failures

        run_log.ended(result, failures(result))
        stale = why_out_of_date(
            self._module, time.time(), result.committed, result.first_seen, result.valid_until
        )
        self._report.concluded(result, stale)
        return result.exit_code


def _unreadable(damage: "list[Difference]", prepared: "PreparedPlan") -> "list[Difference]":
    """Return the unreadable paths that the plan does not replace."""
    from huai_client.diff.candidate import DifferenceKind
    from huai_client.diff.files import paths

    plan = prepared.plan
    replaced = {*paths(plan.fetches)}
    replaced.update(link.path for stage in plan.stages for link in stage.links)
    unreadable = (each for each in damage if each.kind is DifferenceKind.UNREADABLE)
    return [each for each in unreadable if each.path not in replaced]
