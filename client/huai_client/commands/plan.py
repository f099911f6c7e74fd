"""`huai-client plan`: show what a sync would do."""

from pathlib import Path

import click

from huai_client.arguments import json_option, sync_options
from huai_client.config import load
from huai_client.options import SyncOptions
from huai_client.run import Run, Talk


@click.command()
@click.argument("name")
@sync_options
@json_option
@click.pass_obj
def command(
    root: Path,
    name: str,
    max_delete: str | None,
    adopt: bool,
    delete_strangers: bool,
    accept_rollback: bool,
    wait: float,
    as_json: bool,
) -> int:
    """Show what `sync NAME` would do, and do none of it."""
    options = SyncOptions(max_delete, adopt, delete_strangers, accept_rollback)
    run = Run(root, name, load(root).module(name), Talk(quiet=False, as_json=as_json))
    return run.plan(options, wait=wait)
