"""A run with its hooks around it, and what is said of them.

What a hook prints goes to standard error and the log, never to standard output.
"""

from collections.abc import Callable

from huai_client.cli.console import Console
from huai_client.cli.run_log import RunLog
from huai_client.config.mirror import Mirror
from huai_client.hooks.changes import Changes
from huai_client.hooks.hooks import HookRun, Hooks
from huai_schema.errors import ExitCode


def with_hooks(
    mirror: Mirror, console: Console, run_log: RunLog, work: Callable[[Changes], ExitCode]
) -> ExitCode:
    """Call `work` between the hooks; returns its exit code, or raises its error, if it failed.

    Raises:
        HookError: a hook failed, and nothing else did.
    """

    def hear(hook: str, line: str) -> None:
        console.info(f"{mirror.name}: {hook}: {line}")

    def ended(run: HookRun) -> None:
        if run.failure:
            console.warning(f"the hook {run.hook} failed: {run.failure}")
        milliseconds = round(1000 * run.seconds)
        console.event("hook", hook=run.hook, milliseconds=milliseconds, failure=run.failure)

    hooks = Hooks(mirror, run_log.record, hear, ended)
    try:
        hooks.before()
        code = work(hooks.changes)
    except Exception as error:
        run_log.failed(error)
        hooks.after(run_log.record)
        raise
    failed = hooks.after(run_log.record)
    if failed and code == ExitCode.OK:
        raise failed
    return code
