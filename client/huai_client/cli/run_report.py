"""The printed report of a run: messages while it runs, a plan, the result."""

import sys
import time
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from huai_client.cli.console import Console
from huai_client.config.mirror import Mirror
from huai_client.config.settings_record import TreeSettings
from huai_client.run.ages import clock_warning
from huai_client.state import state as states
from huai_program.durations import seconds
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import path_as_text, show

if TYPE_CHECKING:
    from huai_client.diff.candidate import Difference
    from huai_client.hooks.hooks import HookRun
    from huai_client.plan.prepared import PreparedPlan
    from huai_client.proofs.proved import Proved
    from huai_client.sync.attest import AttestOutcome
    from huai_client.sync.result import Observer, SyncResult
    from huai_client.verify.queue import VerifyRequest
    from huai_client.verify.run import VerifyRun

_OPERATIONS = 20
"""The number of operations of a plan that are printed unless all are requested."""


class ConsoleReport:
    """A report of a run (`sync.run.RunReport`) that prints each event, as text or JSON."""

    def __init__(self, mirror: Mirror, console: Console) -> None:
        """Print to `console`, as the console of this module."""
        self._name = mirror.name
        self._module = mirror.config
        self._paths = mirror.paths
        self._console = replace(console, module=mirror.name)

    def _info(self, text: str) -> None:
        self._console.info(f"{self._name}: {text}")

    # Before and around the sync

    def upstream(self, message: str) -> None:
        """Print a message about the upstream, also as an event."""
        self._info(message)
        self._console.event("upstream", reason=message)

    def half_changed(self, file: str) -> None:
        """Warn about a file that an interrupted run left half changed."""
        self._console.warning(f"{file} was half changed in place, and is compared")

    def full_comparison(self, state: states.State, changed: tuple[str, ...]) -> None:
        """Print why the whole tree is compared: `changed`, keys of client.toml, or no record."""
        has_keys = TreeSettings.parse(state.filter).keys is not None
        why = (
            f"client.toml has another {', '.join(changed)} than the last sync"
            if has_keys
            else "the settings of the last sync were not recorded"
        )
        self._info(f"the whole tree is compared once: {why}")

    def on_hold(self, state: states.State) -> None:
        """Print that the tree is held after an undo, and how to resume."""
        self._info(states.HELD)
        self._console.event("held", undone=state.held)

    def hook_line(self, hook: str, line: str) -> None:
        """Print the line to standard error and the log, never to standard output."""
        self._info(f"{hook}: {line}")

    def hook_ended(self, run: "HookRun") -> None:
        """Print the end of a hook as an event, and warn if it failed."""
        if run.failure:
            self._console.warning(f"the hook {run.hook} failed: {run.failure}")
        milliseconds = round(1000 * run.seconds)
        self._console.event("hook", hook=run.hook, milliseconds=milliseconds, failure=run.failure)

    def attested(self, outcome: "AttestOutcome") -> None:
        """Print an attestation as an event; warn if it was not accepted for a new reason."""
        self._console.event(
            "attestation",
            serial=outcome.attestation.serial,
            commit=outcome.attestation.commit,
            time=outcome.attestation.time,
            sent=outcome.accepted,
            failure=outcome.failure or None,
        )
        if outcome.failure and outcome.is_news:
            self._console.warning(f"the attestation was not accepted: {outcome.failure}")

    def not_attested(self, error: HuaiError) -> None:
        """Warn about the failed attestation."""
        self._console.warning(f"nothing is attested: {error.message}; {error.hint}")

    # During a sync

    def observer(self) -> "Observer":
        """Return the observer that prints the progress."""
        from huai_client.cli.progress import choose_listener
        from huai_client.sync.result import Observer

        listener = choose_listener(self._console, out=sys.stdout, err=sys.stderr)
        return Observer(
            listener, self._planned, self._console.steps(), self._proof_line, self._proved
        )

    def _planned(self, prepared: "PreparedPlan") -> None:
        """Print a plan's totals and warnings."""
        from huai_client.cli.report import by_stat_line, summary_line, warnings

        self._console.planned(prepared)
        info = prepared.commit.info
        self._info(f"serial {info.serial}: {summary_line(prepared.summary)}")
        self._console.event("planned", serial=info.serial, **prepared.summary._asdict())
        if line := by_stat_line(prepared):
            self._info(line)
        if prepared.unlisted:
            self._console.warning(prepared.unlisted)
        for warning in warnings(prepared):
            self._console.advice(warning)

    def _proof_line(self, line: str) -> None:
        self._info(f"proof: {line}")

    def _proved(self, proved: "Proved") -> None:
        """Print a proof as a JSON event."""
        self._console.event(
            "proof",
            path=path_as_text(proved.repository.top),
            profile=proved.repository.profile,
            milliseconds=round(1000 * proved.seconds),
            failure=proved.failure,
        )

    # The end of a sync

    def up_to_date(self, state: states.State, stale: str) -> None:
        """Print that nothing is new or the tree is held, a `stale` warning, and the totals."""
        if state.held:
            self.on_hold(state)
        else:
            self._info(f"nothing new, serial {state.serial}")
        if stale:
            self._console.warning(stale)
        self._console.event(
            "sync",
            commit=state.applied,
            serial=state.serial,
            committed=state.committed or None,
            total_bytes=state.total_bytes,
            changed=False,
            stale=bool(stale),
        )
        self._console.totals(0, state.total_bytes)

    def concluded(self, result: "SyncResult", stale: str) -> None:
        """Print what was done, what failed, warnings, and the totals of a good run."""
        from huai_client.cli.report import published_line, result_values, reused_line, volatile_line
        from huai_client.sync.result import failures

        self._console.ended(result)
        if result.reused and result.reused.files:
            self._info(reused_line(result.reused))
        if result.report and result.report.published:
            self._info(published_line(result.report))
        if result.outcome and (line := volatile_line(result.outcome)):
            self._info(line)
        for failure in failures(result):
            self._console.error(f"{self._name}: {failure}")
        for warning in (clock_warning(result.committed, time.time()), result.news, stale):
            if warning:
                self._console.warning(warning)
        self._console.event("sync", stale=bool(stale), **result_values(result))
        if result.exit_code == ExitCode.OK:
            received = result.outcome.bytes_received if result.outcome else 0
            self._console.totals(received, result.total_bytes)
        else:
            self._console.error(f"{self._name}: {result.exit_code.meaning}")

    # Verification

    def verifying(self, run: "VerifyRun") -> AbstractContextManager[object]:
        """Return a context manager that shows on a terminal what was compared so far."""
        from huai_client.cli.report import verifying_line
        from huai_program.cli.progress_line import ProgressLine

        visible = not (self._console.quiet or self._console.as_json)
        return ProgressLine(partial(verifying_line, run.tally), visible=visible)

    def difference(self, difference: "Difference") -> None:
        """Print the difference as a result."""
        from huai_client.cli.report import show_difference

        show_difference(self._console, difference)

    def verified(self, run: "VerifyRun", request: "VerifyRequest", differences: int) -> None:
        """Print the number of compared entries, and the verdict."""
        from huai_client.cli.report import show_end

        show_end(self._console, run, request, differences)

    def unreadable(self, paths: "list[Difference]") -> None:
        """Warn about the paths, and name one."""
        from huai_client.cli.report import unreadable_line

        self._console.warning(unreadable_line(paths))

    # A plan

    def plan(self, prepared: "PreparedPlan", *, every: bool) -> ExitCode:
        """Print a plan, with `every` all of its operations, otherwise the first 20; return `OK`.

        Raises the error with which a sync refuses it.
        """
        from huai_client.cli.report import selection_line, selection_values, summary_line, warnings
        from huai_client.inspect.plan_totals import Forecast

        self._console.planned(prepared)
        forecast = Forecast.of(prepared, self._paths.history)
        self._console.result(f"{self._name}: {summary_line(prepared.summary)}")
        for line in forecast.lines():
            self._console.result(line)
        if TreeSettings.parse(prepared.filter).rules:
            self._console.result(f"{self._name}: {selection_line(prepared)}")
            self._console.event("selection", **selection_values(prepared))
        self._operations(prepared, sys.maxsize if every else _OPERATIONS)
        for repo in prepared.repositories:
            self._console.info(f"{repo.profile} repository: {show(repo.top)} ({repo.found_by})")
            self._console.event(
                "repository",
                path=path_as_text(repo.top),
                profile=repo.profile,
                found_by=repo.found_by,
            )
        for warning in filter(None, (prepared.unlisted, *warnings(prepared))):
            self._console.warning(warning)
        self._console.event("plan", **prepared.summary._asdict(), **forecast.values())
        if prepared.refused is not None:
            raise prepared.refused
        return ExitCode.OK

    def _operations(self, prepared: "PreparedPlan", most: int) -> None:
        """Print at most `most` operations for people, and all of them for programs."""
        from huai_client.inspect.plan_totals import delayed_lines, plan_lines

        count = 0
        for operation, path, detail, volatile in plan_lines(prepared):
            count += 1
            if count <= most:
                text = f"{operation:10} {show(path)}" + (f"  ({detail})" if detail else "")
                self._console.result(text)
            self._console.event(
                "operation",
                operation=operation,
                path=path_as_text(path),
                detail=detail,
                volatile=volatile,
            )
        for path, when in delayed_lines(prepared, seconds(self._module.delete_after)):
            count += 1
            if count <= most:
                self._console.result(f"{'delayed':10} {show(path)}  ({when})")
            self._console.event("delayed", path=path_as_text(path), until=when)
        if count > most:
            self._console.result(
                f"and {count - most:,} more: huai-client plan --list {self._name} shows them all"
            )
