"""`huai-client diff`: show the differences between two local commits."""

from pathlib import Path

import click

from huai_client.cli.options import module_argument
from huai_client.config.load import load
from huai_client.inspect.commits import LocalCommits, Pair
from huai_client.inspect.comparison import (
    ChangeTotals,
    SnapshotChange,
    by_path,
    compare_snapshots,
    without_unfetched,
)
from huai_client.inspect.format import step_line, step_values
from huai_client.state.paths import module_places
from huai_program.cli.options import json_option
from huai_program.ending import print_json
from huai_program.output import end_with_reader


@click.command()
@module_argument
@click.argument("commits", metavar="[A..B]", default="")
@click.option("--summary", is_flag=True, help="Count only, and list no path.")
@json_option
@click.pass_obj
def command(root: Path, name: str, commits: str, summary: bool, as_json: bool) -> None:
    """Show the differences between two local commits of NAME.

    A and B are serials, beginnings of commit ids, or `applied` (what the tree was brought to),
    `previous` (what it was before) and `newest` (what was fetched last, also by `plan`). A defaults
    to `applied` and B to `newest`; without both, shows what the next sync would bring, or if
    nothing new is known, what the last one brought. Asks no upstream, and shows nothing of
    directories whose metadata a filter left out.
    """
    end_with_reader()
    load(root).module(name)
    local = LocalCommits(name, module_places(root, name))
    pair, sparse = local.pair(commits), local.repository.sparse
    snapshots = pair.old.snapshot, pair.new.snapshot
    tally = ChangeTotals()
    steps = compare_snapshots(*snapshots)
    if pair.old.id in sparse or pair.new.id in sparse:
        steps = without_unfetched(steps, snapshots, sparse.absent)
    for step in by_path(steps):
        tally.add(step)
        if not summary:
            _print_step(name, step, as_json=as_json)
    _conclude(name, pair, tally, summary=summary, as_json=as_json)


def _print_step(name: str, step: SnapshotChange, *, as_json: bool) -> None:
    """Print a change, as a line or as JSON."""
    if as_json:
        print_json("change", module=name, **step_values(step))
    else:
        click.echo(step_line(step))


def _conclude(name: str, pair: Pair, tally: ChangeTotals, *, summary: bool, as_json: bool) -> None:
    """Print the totals of a diff: as JSON, to standard error, or with `summary` to output."""
    if as_json:
        print_json(
            "diff",
            module=name,
            from_commit=pair.old.id,
            from_serial=pair.old.info.serial,
            to_commit=pair.new.id,
            to_serial=pair.new.info.serial,
            **tally.values(),
        )
    else:
        serials = f"serial {pair.old.info.serial} → {pair.new.info.serial}"
        click.echo(f"{name}: {serials}: {tally}", err=not summary)
