"""The record of each run of a command on a module, which the operator's page shows."""

import time
from collections.abc import Callable
from pathlib import Path

import click

from huai_schema.errors import ExitCode, HuaiError
from huai_server.state.paths import module_places
from huai_server.state.runs import Run, save_run

_CRASHED = 1
"""The exit code of Python after an unexpected error."""


_MEANINGS = {int(code): code.meaning for code in ExitCode}


def run_recorded(
    root: Path,
    name: str,
    work: str,
    run: Callable[[], int],
    reason: Callable[[], str] | None = None,
) -> int:
    """Call `run`, record how it ended, and return its exit code; an error is recorded and raised.

    `work` is the name of the command, `reason` returns the reason of an exit code other than 0; by
    default its meaning.  A run is not recorded if it was interrupted, is a wrong command line, or
    met a locked module.
    """
    begun, start = int(time.time()), time.monotonic()

    def record(code: int, error: str) -> None:
        places = module_places(root, name)
        save_run(places, work, Run(begun, time.monotonic() - start, code, error))

    try:
        code = int(run())
    except click.ClickException:
        raise
    except HuaiError as error:
        if error.exit_code != ExitCode.LOCKED:
            record(int(error.exit_code), error.message)
        raise
    except Exception as error:
        record(_CRASHED, f"{type(error).__name__}: {error}")
        raise
    explained = reason() if code and reason else _MEANINGS.get(code, "")
    record(code, explained if code else "")
    return code
