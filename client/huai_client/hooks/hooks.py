"""The hooks of one run: when they run, and the effect of a failure.

    before      each run, before any request to the upstream; if it fails, nothing is begun
    on_change   the tree was changed, by this run or by an earlier interrupted one
    on_failure  the run did not end well, `before` included
    after       each run

Prints nothing, and knows only its own exit code.  A run ended by a signal runs no more hooks.
"""

import os
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from huai_client.config.mirror import Mirror
from huai_client.hooks.changes import Changes, ListKind
from huai_client.state.history import RunRecord
from huai_program.durations import seconds
from huai_program.programs import environment, run_program
from huai_program.quoting import quoted
from huai_schema.errors import ExitCode, HuaiError

_REASON = 4096


def before_variables(hook: str, mirror: Mirror, began: RunRecord) -> dict[str, str]:
    """Return the variables of every hook; `began` is the record of the run when it began."""
    return {
        "HUAI_HOOK": hook,
        "HUAI_MODULE": mirror.name,
        "HUAI_DEST": mirror.config.dest,
        "HUAI_CLIENT_ROOT": str(mirror.root),
        "HUAI_COMMIT_BEFORE": began.before,
        "HUAI_SERIAL_BEFORE": str(began.serial),
    }


def ended_variables(record: RunRecord, changes: Changes) -> dict[str, str]:
    """Return the environment variables that only hooks after the sync get."""
    return {
        "HUAI_EXIT_CODE": str(record.code),
        "HUAI_REASON": quoted(record.reason, _REASON),
        "HUAI_COMMIT": record.commit,
        "HUAI_SERIAL": str(record.serial),
        "HUAI_RECEIVED": str(record.received),
        "HUAI_TOTAL_BYTES": str(record.total_bytes),
        "HUAI_CHANGED": str(int(changes.any)),
        **{f"HUAI_{kind.upper()}": str(changes.counts[kind]) for kind in ListKind},
    }


def list_variables(changes: Changes) -> dict[str, str]:
    """Return the variables that only `on_change` gets: the lists, and HUAI_INTERRUPTED."""
    lists = {f"HUAI_{kind.upper()}_LIST": str(changes.path(kind)) for kind in ListKind}
    return {**lists, "HUAI_INTERRUPTED": str(int(changes.interrupted))}


class HookError(HuaiError):
    """A hook failed."""

    exit_code = ExitCode.HOOK


class HookRun(NamedTuple):
    """The result of one hook."""

    hook: str
    seconds: float
    failure: str
    """The reason of a failure, or empty."""


class HookRunner:
    """The hooks of one run for one module; the caller holds the module's lock."""

    def __init__(
        self,
        mirror: Mirror,
        began: RunRecord,
        on_line: Callable[[str, str], None],
        ended: Callable[[HookRun], None],
    ) -> None:
        """Take the run so far (`began`); `ended` gets each result.

        `on_line` gets a hook's name and each line that it prints.
        """
        self._mirror = mirror
        self._hooks = mirror.config.hooks
        self._began = began
        self._on_line = on_line
        self._ended = ended
        self.changes = Changes(mirror.paths.changes, listed=self._hooks.on_change is not None)

    def before(self) -> None:
        """Begin the lists of changes, and run the hook `before`.

        Raises `HookError` if it fails, `ListError` if the lists cannot be written.
        """
        self.changes.begin()
        failure = self._run("before", {})
        if failure:
            raise HookError(
                f"the hook before failed: {failure}; nothing was begun",
                hint="see docs/CLIENT-HOOKS.md; without [modules.NAME.hooks] before is not run",
            )

    def after(self, record: RunRecord) -> HookError | None:
        """Run the other hooks after the run `record`, and delete the lists of changes.

        `on_change` only with changes, `on_failure` only after a failed run; all are run, whichever
        fails.  Returns the first failure; None without one, or if failures are warnings.
        """
        changes = self.changes
        variables = ended_variables(record, changes)
        changes.close()
        failures: list[str] = []
        if changes.any:
            failures.append(self._run_named("on_change", {**variables, **list_variables(changes)}))
        changes.forget()
        if record.code != ExitCode.OK:
            failures.append(self._run_named("on_failure", variables))
        failures.append(self._run_named("after", variables))
        failed = next(filter(None, failures), "")
        if not failed or self._hooks.failure == "warn":
            return None
        return HookError(
            f"{failed}; the tree is as the sync left it",
            hint='set failure = "warn" in the table of hooks to make this a warning',
        )

    def _run_named(self, hook: str, variables: Mapping[str, str]) -> str:
        """Run a hook; return a message with its name if it failed, or an empty text."""
        failure = self._run(hook, variables)
        return f"the hook {hook} failed: {failure}" if failure else ""

    def _run(self, hook: str, variables: Mapping[str, str]) -> str:
        """Run a hook, if it is set, and report its end; return why it failed, or an empty text."""
        command = self._hooks.command(hook)
        if not command:
            return ""
        began = time.monotonic()
        own = {**before_variables(hook, self._mirror, self._began), **variables}
        failure = run_program(
            command,
            environment(os.environ, own),
            seconds=seconds(self._hooks.timeout),
            on_line=lambda line: self._on_line(hook, line),
        )
        self._ended(HookRun(hook, time.monotonic() - began, failure))
        return failure
