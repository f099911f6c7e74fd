"""`huai-server audit`: compare trees with their last commits."""

import time
from pathlib import Path

import click

from huai_program.cli.options import engine_option, wait_option
from huai_program.humanize import counted
from huai_server.actions import modules
from huai_server.cli.console import Console
from huai_server.cli.options import each_module, modules_options
from huai_server.cli.progress import Progress
from huai_server.cli.report import difference_line, problem_values, show_problems


@click.command()
@modules_options
@wait_option("a commit")
@engine_option
@each_module(quiet=True)
def command(root: Path, name: str, wait: float, engine: str, console: Console) -> int:
    """Scan the trees of the modules NAME, or of all, and report what their last commits lack.

    Commits nothing. Exit code 47 means that something differs: commits from lists missed it, or it
    has changed since. 41: nothing differs, but some paths could not be read.
    """
    started = time.monotonic()
    with Progress(console):
        result = modules.audit(root, name, wait=wait, engine=engine)
    seconds = time.monotonic() - started
    show_problems(console, name, result.problems)
    lines = [difference_line(each) for each in result.first]
    console.event(
        "audit",
        module=name,
        commit=result.head.commit,
        serial=result.head.info.serial,
        counts=result.counts._asdict(),
        paths=lines,
        problems=problem_values(result.problems),
        seconds=round(seconds, 3),
    )
    for line in lines:
        console.result(f"{name}: {line}")
    verdict = "nothing differs"
    if result.counts.total:
        verdict = counted(result.counts.total, "entry differs", "entries differ")
    console.result(f"{name}: {verdict} from serial {result.head.info.serial} ({seconds:.1f} s)")
    return result.exit_code
