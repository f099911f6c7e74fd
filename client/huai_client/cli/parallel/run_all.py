"""Runs the work of several modules, and combines their exit codes."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import click

from huai_client.cli.console import Console
from huai_client.cli.parallel.child import CRASHED, unblock_signals
from huai_client.cli.parallel.pool import ModulePool
from huai_program.ending import conclude
from huai_program.humanize import counted
from huai_schema.errors import ExitCode, worst_exit_code


def run_all(
    one: Callable[[str], int], names: Sequence[str], *, parallel: int, console: Console
) -> int:
    """Call `one` for all `names`, at most `parallel` at a time; return the worst exit code."""
    began = time.monotonic()

    def work(name: str) -> int:
        return conclude(
            name,
            partial(_begin, one, name),
            usage_error=click.ClickException,
            abort=click.Abort,
            as_json=console.as_json,
            module=name,
        )

    pool = ModulePool(work, partial(_ended, console), as_json=console.as_json)
    pool.run(names, parallel=parallel)
    codes = {name: pool.codes[name] for name in names}
    _conclude(console, codes, time.monotonic() - began)
    return worst_exit_code(codes.values())


def _begin(one: Callable[[str], int], name: str) -> int:
    unblock_signals()
    return one(name)


def _ended(console: Console, name: str, code: int, seconds: float) -> None:
    if _exit_code(code) is None:
        replace(console, module=name).log(meaning(code))  # a crashed process logs nothing itself
    milliseconds = round(1000 * seconds)
    console.event("ended", module=name, code=code, name=name_of(code), milliseconds=milliseconds)


def _conclude(console: Console, codes: dict[str, int], seconds: float) -> None:
    failed = [name for name, code in codes.items() if code]
    code = worst_exit_code(codes.values())
    console.event(
        "all-ended",
        modules=len(codes),
        failed=failed,
        code=code,
        name=name_of(code),
        milliseconds=round(1000 * seconds),
    )
    if failed:
        reasons = ", ".join(f"{name} ({meaning(codes[name])})" for name in failed)
        sys.stderr.write(
            f"huai-client: {len(failed)} of {counted(len(codes), 'module')} failed: {reasons}\n"
        )
    elif not console.quiet and not console.as_json:
        sys.stderr.write(
            f"huai-client: {counted(len(codes), 'module')} ended well in {seconds:.1f} s\n"
        )


def _exit_code(code: int) -> ExitCode | None:
    """Look up an exit code; a child's 1 is a crash and not a wrong command line."""
    return next((each for each in ExitCode if each == code != CRASHED), None)


def name_of(code: int) -> str | None:
    """Return the name of an exit code, if it has one."""
    exit_code = _exit_code(code)
    return None if exit_code is None else exit_code.name


def meaning(code: int) -> str:
    """Return an exit code in words."""
    exit_code = _exit_code(code)
    return f"{code}, {'it crashed' if exit_code is None else exit_code.meaning}"
