"""`huai-client status`: where the trees stand."""

import time
from pathlib import Path

import click

from huai_client import state as states
from huai_client.arguments import json_option
from huai_client.config import Module, load
from huai_client.places import module_places
from huai_client.publishing import waiting
from huai_client.upstream import MetadataUrl
from huai_schema.program.ending import print_json
from huai_schema.program.locking import holder


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@json_option
@click.pass_obj
def command(root: Path, names: tuple[str, ...], as_json: bool) -> None:
    """Show where the trees of the modules NAME stand, or of all."""
    config = load(root)
    for name in names or sorted(config.modules):
        module, places = config.module(name), module_places(root, name)
        state, running = states.load(places.state), holder(places.lock)
        waits = waiting.head(places.waiting)
        if as_json:
            print_json(
                "module",
                module=name,
                dest=module.dest,
                url=str(MetadataUrl(module.url)),
                applied=state.applied,
                serial=state.serial or None,
                attempted=list(state.attempted),
                time=state.time or None,
                running=running,
                waiting=waits.paths,
            )
        else:
            line = _status_line(name, module, state, running)
            click.echo(line + (f", {waits.paths:,} deletions wait" if waits.paths else ""))


def _status_line(name: str, module: Module, state: states.State, running: int | None) -> str:
    if state.applied is None:
        what = "never synced to its end"
    else:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state.time))
        what = f"serial {state.serial}, synced {when}"
    if state.attempted:
        what += ", a run was cut: the next one finishes it"
    if running:
        what += f", running (process {running})"
    return f"{name}: {module.dest}: {what}"
