"""The work of several modules: from their names to one exit code."""

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
    """Call `one` for all `names`; returns the worst exit code.

    At most `parallel` processes at a time.
    """
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
    if _known(code) is None:
        replace(console, module=name).log(meaning(code))  # it could not say so itself
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
        told = ", ".join(f"{name} ({meaning(codes[name])})" for name in failed)
        sys.stderr.write(
            f"huai-client: {len(failed)} of {counted(len(codes), 'module')} failed: {told}\n"
        )
    elif not console.quiet and not console.as_json:
        sys.stderr.write(
            f"huai-client: {counted(len(codes), 'module')} ended well in {seconds:.1f} s\n"
        )


def _known(code: int) -> ExitCode | None:
    """The meaning of an exit code; a child's 1 is a crash and not a wrong command line."""
    return next((known for known in ExitCode if known == code != CRASHED), None)


def name_of(code: int) -> str | None:
    """The name of an exit code; None: it has none."""
    known = _known(code)
    return None if known is None else known.name


def meaning(code: int) -> str:
    """An exit code in words."""
    known = _known(code)
    return f"{code}, {'it crashed' if known is None else known.meaning}"
