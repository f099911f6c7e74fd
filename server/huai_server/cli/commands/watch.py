"""`huai-server watch`: commit a tree whenever it has changed."""

import math
import time
from functools import partial
from pathlib import Path

import click

from huai_program.cli.options import parse_duration
from huai_program.garbage import collect_usually
from huai_program.humanize import counted
from huai_server.cli.commands.commit import commit_module
from huai_server.cli.console import Console
from huai_server.cli.options import console_options, module_argument
from huai_server.commit.change_lists import ChangeLists
from huai_server.commit.result import CommitOptions
from huai_server.scan.types import Problem
from huai_server.watch.record import WatchRecord
from huai_server.watch.schedule import Schedule
from huai_server.watch.watch import Observer, Watcher


def _parse_seconds(
    least: float, context: click.Context, option: click.Parameter, value: str
) -> float:
    """Convert a duration such as `2m`, or seconds with a fraction, of at least `least` seconds."""
    try:
        number = float(value)
    except ValueError:
        number = float(parse_duration(context, option, value) or 0)
    if not least <= number < math.inf:
        raise click.BadParameter(f"{value!r} is below {least} seconds, or too long")
    return number


@click.command()
@module_argument
@click.option(
    "--delay",
    default="5s",
    callback=partial(_parse_seconds, 0),
    show_default=True,
    metavar="TIME",
    help="Commit when nothing has changed for this long.",
)
@click.option(
    "--at-most",
    default="5m",
    callback=partial(_parse_seconds, 1),
    show_default=True,
    metavar="TIME",
    help="Commit at the latest this long after the first change, and retry this long after a "
    "commit that failed.",
)
@console_options(quiet=True)
def command(root: Path, name: str, delay: float, at_most: float, console: Console) -> None:
    """Commit the module NAME whenever its tree has changed, until stopped.

    For trees that change all day without an end of an update. All directories are watched
    (inotify), and a commit looks only at what was reported. It records the present state: a file
    that is being written is committed again afterwards.
    """

    def commit(lists: ChangeLists | None) -> tuple[Problem, ...]:
        # Another commit of this module may run: a cron job's, or an administrator's.
        options = CommitOptions(wait=at_most, lists=(lambda _: lists) if lists else None)
        done = commit_module(console, root, name, options)
        if done.after.failures:  # a commit of nothing makes these updates again
            schedule.commit_later(time.monotonic())
        return done.result.problems

    def watching(record: WatchRecord) -> None:
        """Print how many directories are watched."""
        console.event(
            "watching", module=name, directories=record.directories, unwatched=record.unwatched
        )
        directories = counted(record.directories, "directory", "directories")
        console.result(f"{name}: watching {directories if record.directories else 'everything'}")

    def in_step(changes: int, seconds: float) -> None:
        console.event("in_step", module=name, changes=changes, seconds=round(seconds, 3))

    observer = Observer(
        watching,
        lambda since: console.event("behind", module=name, since=since),
        in_step,
        lambda text: console.warning(f"{name}: {text}"),
        console.failure,
    )
    collect_usually()
    schedule = Schedule(delay=delay, at_most=at_most)
    Watcher(root, name, commit, observer, schedule).run()
