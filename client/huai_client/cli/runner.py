"""One command for one module, under its lock, with messages for the user.

Modules that take long to load are imported when they are needed.
"""

import sys
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from huai_client.cli.console import Console
from huai_client.cli.run_log import RunLog
from huai_client.config.hooks import NO_HOOKS
from huai_client.config.mirror import Mirror
from huai_client.config.settings_record import TreeSettings
from huai_client.config.tree_settings import changed_keys
from huai_client.diff.active_filter import has_same_settings
from huai_client.diff.marks import stand
from huai_client.metadata.known_heads import KnownHeads
from huai_client.metadata.upstream import Upstream, is_up_to_date
from huai_client.run.durations import dated_ahead, expired, overdue, too_old
from huai_client.run.options import SyncOptions
from huai_client.state import delayed_record
from huai_client.state import state as states
from huai_client.state.lock import module_lock
from huai_schema.errors import ExitCode
from huai_schema.paths import exact, show
from huai_schema.program.spans import seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from huai_client.hooks.changes import Changes
    from huai_client.metadata.repository import Repository
    from huai_client.plan.prepared import Prepared
    from huai_client.proofs.proved import Proved
    from huai_client.state.run_record import Kind
    from huai_client.sync.result import Observer, SyncResult
    from huai_client.sync.sync import Sync
    from huai_client.sync.undo import Undo
    from huai_client.verify.request import VerifyRequest
    from huai_schema.paths import RelPath
    from huai_schema.program.notify.notifier import Notifier

_OPERATIONS = 20
"""How many operations of a plan people see without asking for all."""


class Run:
    """The commands of one module."""

    def __init__(
        self,
        mirror: Mirror,
        console: Console,
        approve: "Callable[[Prepared], None] | None" = None,
        notifier: "Notifier | None" = None,
    ) -> None:
        """`approve` is called with each plan before it is shown, and may raise to refuse it.

        `notifier` has somebody told of syncs that fail.
        """
        self._mirror = mirror
        self._name = mirror.name
        self._module = mirror.config
        self._places = mirror.paths
        self._console = replace(console, module=mirror.name)
        self._approve = approve or _approve_all
        self._notifier = notifier
        self._changes: Changes | None = None
        """What hooks are told of; None: there are no hooks."""

    def sync(self, options: SyncOptions, *, wait: float) -> ExitCode:
        """Bring the tree to the newest commit."""
        with module_lock(self._places, wait=wait):
            if self._notifier is None:
                return self._recorded_sync(options)
            from huai_client.cli.notified import why_it_failed

            reason = partial(why_it_failed, self._places)
            return self._notifier.locked(partial(self._recorded_sync, options), reason)

    def _recorded_sync(self, options: SyncOptions) -> ExitCode:
        """The sync between its hooks, as a line of the history."""
        with self._run_log("sync") as run_log:
            state = self._state(unhold=options.unhold)
            run_log.started(state)
            if self._module.hooks == NO_HOOKS:
                return self._attested(options, self._synced(options, run_log, state))
            from huai_client.cli.hooked import with_hooks

            def synced(changes: "Changes") -> ExitCode:
                self._changes = changes
                return self._attested(options, self._synced(options, run_log, state))

            return with_hooks(self._mirror, self._console, run_log, synced)

    def _attested(self, options: SyncOptions, code: ExitCode) -> ExitCode:
        """Say what the tree holds, if that is wanted and known; `code` is how the sync ended."""
        if code == ExitCode.OK and self._module.attest.on and options.only is None:
            from huai_client.cli.attested import say_what_is_held

            say_what_is_held(self._mirror, self._console)
        return code

    def _synced(self, options: SyncOptions, run_log: RunLog, state: states.State) -> ExitCode:
        """The sync itself, between the hooks."""
        self._finish_patches()
        options.deadline.check("it was not begun")
        upstream = self._upstream(options)
        if state.held and state.attempted:
            run_log.set_kind("undo")
            return self._undone(run_log)
        timeout = options.deadline.bound(self._module.timeout)
        same = not (options.adopt or options.compare) and has_same_settings(self._mirror, state)
        self._say_if_changed(options, state)
        same = same and stand(self._module.dest, state)
        heads = KnownHeads(self._places.repository)
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

    def undo(self, *, wait: float) -> ExitCode:
        """Bring the tree back to what it was before the last sync."""
        with module_lock(self._places, wait=wait), self._run_log("undo") as run_log:
            run_log.started(states.load(self._places.state))
            return self._undone(run_log)

    def plan(self, options: SyncOptions, *, wait: float, every: bool = False) -> ExitCode:
        """Show what a sync would do: `every` operation, or the first ones."""
        with module_lock(self._places, wait=wait):
            prepared = self._sync(options).prepare()
        self._approve(prepared)
        return self._shown_plan(prepared, every=every)

    def plan_undo(self, *, wait: float) -> ExitCode:
        """Show what an undo would do."""
        with module_lock(self._places, wait=wait):
            prepared = self._undo().prepare()
        return self._shown_plan(prepared, every=True)

    def _shown_plan(self, prepared: "Prepared", *, every: bool) -> ExitCode:
        from huai_client.cli.report import selection_line, selection_values, summary_line, warnings
        from huai_client.inspect.plan_totals import Forecast

        self._console.planned(prepared)
        forecast = Forecast.of(prepared, self._places.history)
        self._console.result(f"{self._name}: {summary_line(prepared.summary)}")
        for line in forecast.lines():
            self._console.result(line)
        if TreeSettings.parse(prepared.filter).rules:
            self._console.result(f"{self._name}: {selection_line(prepared)}")
            self._console.event("selection", **selection_values(prepared))
        self._show_operations(prepared, sys.maxsize if every else _OPERATIONS)
        for each in prepared.find_repositories():
            self._console.info(f"{each.profile} repository: {show(each.top)} ({each.found_by})")
            self._console.event(
                "repository", path=exact(each.top), profile=each.profile, found_by=each.found_by
            )
        for warning in warnings(prepared):
            self._console.warning(warning)
        self._console.event("plan", **prepared.summary._asdict(), **forecast.values())
        return ExitCode.OK

    def _show_operations(self, prepared: "Prepared", most: int) -> None:
        """Show at most so many operations to people, and all of them to programs."""
        from huai_client.inspect.plan_lines import delayed_lines, plan_lines

        count = 0
        for what, path, detail, volatile in plan_lines(prepared):
            count += 1
            if count <= most:
                text = f"{what:10} {show(path)}" + (f"  ({detail})" if detail else "")
                self._console.result(text)
            self._console.event(
                "operation", operation=what, path=exact(path), detail=detail, volatile=volatile
            )
        for path, when in delayed_lines(prepared, seconds(self._module.delete_after)):
            count += 1
            if count <= most:
                self._console.result(f"{'delayed':10} {show(path)}  ({when})")
            self._console.event("delayed", path=exact(path), until=when)
        if count > most:
            self._console.result(
                f"and {count - most:,} more: huai-client plan --list {self._name} shows them all"
            )

    def verify(self, options: SyncOptions, request: "VerifyRequest", *, wait: float) -> ExitCode:
        """Compare the tree with the applied commit, and repair it if asked to."""
        from huai_client.cli.verify_report import VerifyReport
        from huai_client.verify.run import VerifyRun

        with (
            module_lock(self._places, wait=wait, verifying=True),
            self._run_log("verify") as run_log,
        ):
            run_log.started(states.load(self._places.state))
            report = VerifyReport(self._console, request)
            verifying = VerifyRun(self._mirror, request, report.difference)
            verifying.run(wait=wait)
            code = report.conclude(verifying)
            run_log.verified(report.differences, content=request.content)
            if not report.damage:
                return code
            run_log.set_kind("repair")
            with module_lock(self._places, wait=wait):
                self._finish_patches()
                sync = self._sync(options)
                result = sync.repair(report.damage, self._observer(run_log))
                code = self._conclude(result, run_log)
            if code != ExitCode.OK or result.prepared is None:
                return code
            unread = report.unread(result.prepared.plan)
            verifying.repaired([each.path for each in unread])
            if not unread:
                return code
            self._console.warning(report.unread_line(unread))
            return run_log.unrepaired(len(unread))

    def _upstream(self, options: SyncOptions) -> Upstream:
        def on_message(reason: str) -> None:
            self._console.info(f"{self._name}: {reason}")
            self._console.event("upstream", reason=reason)

        return Upstream.of(
            self._mirror,
            deadline=options.deadline,
            first_only=options.accept_rollback,  # only the one that decides may go back
            on_message=on_message,
        )

    def _state(self, *, unhold: bool) -> states.State:
        """The recorded state; `unhold` ends a hold first, even if the run fails later."""
        state = states.load(self._places.state)
        if unhold and state.held:
            state = replace(state, held="")
            states.save(self._places.state, state)
        return state

    def _finish_patches(self) -> None:
        """Finish the files that an interrupted run was changing where they stand."""
        if not self._places.patches.exists():
            return
        from huai_client.staging import Journals, finish_patches

        for file in finish_patches(Journals(self._places.patches, self._mirror.dest)):
            self._console.warning(
                f"{self._name}: {file} was half changed where it stands, and is compared"
            )

    def _undone(self, run_log: RunLog) -> ExitCode:
        self._finish_patches()
        result = self._undo().run(self._observer(run_log))
        code = self._conclude(result, run_log)
        self._say_if_held(states.load(self._places.state))
        return code

    def _undo(self) -> "Undo":
        from huai_client.sync.undo import Undo

        return Undo(self._mirror)

    def _say_if_held(self, state: states.State) -> None:
        if state.held:
            self._console.info(f"{self._name}: {states.HELD}")
            self._console.event("held", undone=state.held)

    def _say_if_changed(self, options: SyncOptions, state: states.State) -> None:
        """Say why the whole tree is compared, if settings are the reason."""
        if state.applied is None or state.held or options.adopt or options.compare:
            return
        if changed := changed_keys(self._module, *state.settings):
            known = TreeSettings.parse(state.filter).keys is not None
            why = (
                f"client.toml has another {', '.join(changed)} than the last sync"
                if known
                else "by which settings it was made was not recorded yet"
            )
            self._console.info(f"{self._name}: the whole tree is compared once: {why}")

    def _anything_due(self, state: states.State) -> bool:
        now, head = int(time.time()), delayed_record.head(self._places.delayed)
        due = head.due(seconds(self._module.delete_after), now)
        return due or overdue(state.trash, self._module.trash, now)

    def _up_to_date(self, state: states.State) -> ExitCode:
        self._say_if_held(state)
        if not state.held:
            self._console.info(f"{self._name}: nothing new, serial {state.serial}")
        self._console.event(
            "sync",
            commit=state.applied,
            serial=state.serial,
            committed=state.committed or None,
            total_bytes=state.total_bytes,
            changed=False,
            stale=self._warned_of_age(state.committed, state.seen or state.time, state.valid_until),
        )
        self._console.totals(0, state.total_bytes)
        unproved = state.valid_until and not state.held and self._module.verify == "require"
        return (
            ExitCode.STALE if unproved and expired(state.valid_until, time.time()) else ExitCode.OK
        )

    def _warned_of_age(self, committed: int, seen: int, valid_until: int) -> bool:
        """Warn if a commit of these times is older than it may be; returns whether it is."""
        if self._module.verify != "off" and (over := expired(valid_until, time.time())):
            self._console.warning(over)
            return True
        reason = too_old(committed, self._module.max_age, time.time(), seen=seen)
        if reason:
            self._console.warning(reason)
        return bool(reason)

    def _sync(self, options: SyncOptions, upstream: Upstream | None = None) -> "Sync":
        upstream = upstream or self._upstream(options)
        # Loading the planner takes as long as the answer of a near upstream: it is asked first.
        repository = self._asked_ahead(upstream)
        from huai_client.sync.sync import Sync

        return Sync(self._mirror, options, upstream, repository)

    def _asked_ahead(self, upstream: Upstream) -> "Repository | None":
        """The repository that a newer commit, if one is known of, comes to; opened."""
        heard = upstream.metadata.heard
        if heard is None:
            return None
        from huai_client.metadata.repository import Repository

        repository = Repository(self._places.repository, timeout=self._module.timeout)
        repository.ask(heard, upstream.deadline)
        return repository

    def _run_log(self, kind: "Kind") -> RunLog:
        return RunLog(self._places, kind)

    def _observer(self, run_log: RunLog) -> "Observer":
        from huai_client.cli.progress import choose
        from huai_client.sync.result import Observer

        listener = choose(self._console, out=sys.stdout, err=sys.stderr)
        planned = partial(self._planned, run_log)
        return Observer(listener, planned, self._steps(), self._heard, self._proved)

    def _heard(self, line: str) -> None:
        self._console.info(f"{self._name}: proof: {line}")

    def _proved(self, proved: "Proved") -> None:
        self._console.event(
            "proof",
            path=exact(proved.repository.top),
            profile=proved.repository.profile,
            milliseconds=round(1000 * proved.seconds),
            failure=proved.failure,
        )

    def _steps(self) -> "Callable[[str, RelPath], None] | None":
        return self._changes.step if self._changes else self._console.steps()

    def _planned(self, run_log: RunLog, prepared: "Prepared") -> None:
        from huai_client.cli.report import by_stat_line, summary_line, warnings

        run_log.planned(prepared)
        if self._changes:
            self._changes.planned(prepared)
        self._console.planned(prepared)
        info = prepared.commit.info
        self._console.info(f"{self._name}: serial {info.serial}: {summary_line(prepared.summary)}")
        self._console.event("planned", serial=info.serial, **prepared.summary._asdict())
        if line := by_stat_line(prepared):
            self._console.info(f"{self._name}: {line}")
        for warning in warnings(prepared):
            self._console.advice(warning)

    def _conclude(self, result: "SyncResult", run_log: RunLog) -> ExitCode:
        """Print the result."""
        from huai_client.cli.report import (
            failures,
            published_line,
            result_values,
            reused_line,
            volatile_line,
        )

        run_log.ended(result, failures(result))
        self._console.ended(result)
        if result.reused and result.reused.files:
            self._console.info(f"{self._name}: {reused_line(result.reused)}")
        if result.report and result.report.published:
            self._console.info(f"{self._name}: {published_line(result.report)}")
        if result.outcome and (line := volatile_line(result.outcome)):
            self._console.info(f"{self._name}: {line}")
        for failure in failures(result):
            self._console.error(f"{self._name}: {failure}")
        if ahead := dated_ahead(result.committed, time.time()):
            self._console.warning(ahead)
        if result.news:
            self._console.warning(result.news)
        stale = self._warned_of_age(result.committed, result.seen, result.valid_until)
        self._console.event("sync", stale=stale, **result_values(result))
        if result.exit_code == ExitCode.OK:
            received = result.outcome.bytes_received if result.outcome else 0
            self._console.totals(received, result.total_bytes)
        else:
            self._console.error(f"{self._name}: {result.exit_code.meaning}")
        return result.exit_code


def _approve_all(_prepared: "Prepared") -> None:
    """Accept every plan."""
