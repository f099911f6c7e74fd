"""`huai-client log`: show the runs of a module, or the history of one path."""

from pathlib import Path

import click

from huai_client.cli.options import module_argument, parse_path_argument
from huai_client.config.load import Module, load
from huai_client.inspect.commits import LocalCommits
from huai_client.inspect.comparison import PathEvent, path_events
from huai_client.inspect.format import run_values, run_words, step_values, step_words
from huai_client.state import history
from huai_client.state.paths import ModulePlaces, module_places
from huai_program.cli.options import json_option
from huai_program.ending import print_json
from huai_program.humanize import moment
from huai_program.locking import holder
from huai_program.output import end_with_reader
from huai_schema.paths import show


@click.command()
@module_argument
@click.argument("path", required=False)
@click.option(
    "-n",
    "--number",
    type=click.IntRange(1),
    metavar="N",
    help="Show only the newest N runs, or changes of PATH.",
)
@json_option
@click.pass_obj
def command(root: Path, name: str, path: str | None, number: int | None, as_json: bool) -> None:
    """Show the runs of NAME, or the history of PATH, newest first.

    Runs that found nothing new are left out, and repeated failures are one line. PATH is followed
    through the commits that are kept here (keep_commits), also to where it was before it moved.
    """
    end_with_reader()
    module, places = load(root).module(name), module_places(root, name)
    if path is None:
        _print_runs(name, places, number, as_json=as_json)
    else:
        _print_history(name, path, (module, places), number, as_json=as_json)


def _print_runs(name: str, places: ModulePlaces, number: int | None, *, as_json: bool) -> None:
    """Print the newest `number` runs of a module, or all."""
    runs = history.read(places.history)
    serials = {run.commit: run.serial for run in runs if run.commit and run.serial}
    busy = holder(places.lock) is not None
    for position, run in enumerate(runs[:number]):
        running = busy and position == 0
        if as_json:
            print_json("run", module=name, **run_values(run, serials, running=running))
        else:
            click.echo(run_words(run, serials, running=running))
    if not runs and not as_json:
        click.echo(f"{name}: no run is known", err=True)


def _print_history(
    name: str, text: str, config: tuple[Module, ModulePlaces], number: int | None, *, as_json: bool
) -> None:
    """Print the newest `number` commits, or all, that changed the path in `text`."""
    module, places = config
    path = parse_path_argument(text, module.dest)
    events = list(path_events(path, LocalCommits(name, places).line))
    for event in events[:number]:
        if as_json:
            print_json("path", module=name, **_values(event))
        else:
            click.echo(_words(event))
    if not events and not as_json:
        click.echo(f"{name}: {show(path)}: in no commit that is here", err=True)


def _words(event: PathEvent) -> str:
    """Return the line of a commit that changed a path."""
    commit, step = event.commit, event.step
    change = "was there already" if event.oldest else step_words(step)
    when = moment(commit.time)
    return f"serial {commit.info.serial}  {when}  {commit.id[:12]}  {change}: {show(step.path)}"


def _values(event: PathEvent) -> dict[str, object]:
    """Return the JSON fields of a commit that changed a path."""
    commit, step = event.commit, event.step
    return {
        "commit": commit.id,
        "serial": commit.info.serial,
        "time": commit.time,
        **step_values(step),
        "known_since": not event.oldest,
    }
