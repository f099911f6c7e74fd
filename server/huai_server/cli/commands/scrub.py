"""`huai-server scrub`: read content again, and compare it with its digests."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from huai_program.cli.options import engine_option
from huai_program.humanize import counted, human, moment
from huai_schema.errors import ExitCode
from huai_schema.paths import show
from huai_server.actions import modules
from huai_server.cli.console import Console
from huai_server.cli.notified import run_and_notify
from huai_server.cli.options import (
    choose_modules,
    console_options,
    modules_options,
    read_limits_options,
    run_all,
)
from huai_server.cli.progress import Progress
from huai_server.cli.recorded import run_recorded
from huai_server.cli.report import problem_values, show_problems
from huai_server.commit.read_limits import ReadLimits
from huai_server.commit.scrub import ScrubResult
from huai_server.config.load import load
from huai_server.state.paths import module_places
from huai_server.store.scrub_record import Damage

_SHOWN = 20
"""The most damaged files that are named one by one; --json names all."""
_NOT_SCHEDULED = (
    'no file is due, because `scrub` is not set in server.toml: set scrub = "30d", or give --full'
)
_ADVICE = (
    "replace damaged files by sound copies with the old times; if new content is intended, touch "
    "the file and commit"
)


@click.command()
@modules_options
@click.option(
    "--full", is_flag=True, help="Read all that is left of the round now, whatever is due."
)
@read_limits_options
@engine_option
@console_options(quiet=True)
def command(
    root: Path,
    /,
    names: tuple[str, ...],
    every: bool,
    full: bool,
    limits: ReadLimits,
    engine: str,
    console: Console,
) -> int:
    """Reread files of the modules NAME, or of all, and compare them with their digests.

    For scrub = "30d" in server.toml: each run reads what is due of a round through all files, and
    only while no other process uses the disk. Run it hourly. It changes no file and no commit. A
    run that was killed is continued by the next one.

    Exit code 59 means that files have other content than their digests say, although their sizes
    and times are the same: they are damaged. It stays until they are restored, touched and
    committed, or deleted. 41: some files could not be read.
    """
    config = load(root)

    def one(name: str) -> int:
        """Scrub one module, unless it has no commit, or with --all no digests.

        Sends a notification of damage; returns the exit code.
        """
        if config.committed_module(name).digest == "off" and every:
            return ExitCode.OK
        if not module_places(root, name).repository.exists():
            console.result(f"{name}: no commit yet")
            return ExitCode.OK
        results: list[ScrubResult] = []

        def run() -> int:
            """Scrub, and keep the result for the notification."""
            scheduled = full or every or config.committed_module(name).scrub_span is not None
            scrub = partial(modules.scrub, root, name, limits, full=full, engine=engine)
            results.append(_scrub(console, name, scrub, scheduled=scheduled))
            return results[0].exit_code

        return run_and_notify(console, root, name, "scrub", run, lambda: _failure_text(results[0]))

    def one_recorded(name: str) -> int:
        return run_recorded(root, name, "scrub", lambda: one(name))

    return run_all(one_recorded, choose_modules(config, names, every=every, relayed=False), console)


def _scrub(
    console: Console, name: str, scrub: Callable[[], ScrubResult], *, scheduled: bool
) -> ScrubResult:
    """Scrub one module, and print the result; unless `scheduled`, warn that no file is due."""
    started = time.monotonic()
    with Progress(console):
        result = scrub()
    spent = time.monotonic() - started
    show_problems(console, name, result.problems)
    damage = result.record.damage
    for one in damage:
        console.event("damage", module=name, **_damage_values(one))
    for one in damage[:_SHOWN]:
        console.error(f"{name}: {show(one.path)}: damaged: {one.reason}")
    if damage:
        more = len(damage) - _SHOWN
        if more > 0:
            console.error(f"{name}: and {more:,} more; --json names them all")
        console.error(f"{name}: {_ADVICE}")
    console.event("scrub", module=name, **_values(result, spent))
    console.result(f"{name}: {_line(result, spent)}")
    if not scheduled:
        console.warning(f"{name}: {_NOT_SCHEDULED}")
    return result


def _failure_text(result: ScrubResult) -> str:
    """Return how much is damaged with an example, or the meaning of the exit code."""
    damage = result.record.damage
    if damage:
        example = f"{show(damage[0].path)}: {damage[0].reason}"
        return f"{counted(len(damage), 'file')} damaged, for example {example}"
    return result.exit_code.meaning


def _damage_values(damage: Damage) -> dict[str, object]:
    """Return the fields of a damaged file, for JSON."""
    return {
        "path": show(damage.path),
        "reason": damage.reason,
        "expected": damage.expected.hex(),
        "found": damage.found.hex() if damage.found else None,
        "since": damage.since,
    }


def _values(result: ScrubResult, seconds: float) -> dict[str, object]:
    """Return the fields of a scrub that took so many `seconds`, for JSON."""
    current = result.record.current
    return {
        "commit": result.head.commit,
        "serial": result.head.info.serial,
        "files": result.files,
        "bytes": result.bytes,
        "changed": result.changed,
        "damaged": len(result.record.damage),
        "due": result.due,
        "round": {"begun": current.begun, "files": current.files, "bytes": current.size}
        if current
        else None,
        "finished": result.record.finished,
        "problems": problem_values(result.problems),
        "seconds": round(seconds, 3),
    }


def _line(result: ScrubResult, seconds: float) -> str:
    """Return the result of a scrub that took so many `seconds`, as a line."""
    damage = len(result.record.damage)
    verdict = f"{counted(damage, 'file')} damaged" if damage else "no damage"
    if result.due:
        verdict += ", more is due"
    if result.record.finished:
        verdict += f", all was read by {moment(result.record.finished)}"
    read = f"{counted(result.files, 'file')} of {human(result.bytes)} read"
    return f"{read}, {verdict} ({seconds:.1f} s)"
