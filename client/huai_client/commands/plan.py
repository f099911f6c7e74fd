"""`huai-client plan`: show what a sync would do."""

from pathlib import Path

import click

from huai_client.arguments import json_option, module_argument, sync_options
from huai_client.config import load
from huai_client.config_check import check
from huai_client.options import SyncOptions
from huai_client.run import Run
from huai_client.talking.talk import Talk


@click.command()
@module_argument
@sync_options
@click.option(
    "--filter",
    "rules",
    multiple=True,
    metavar="RULE",
    help="Plan for this filter instead of the configured one, to see how much it selects: "
    "'- *.iso', '+ /dists/', 'merge FILE'. May be given several times; the order counts.",
)
@json_option
@click.pass_obj
def command(
    root: Path,
    name: str,
    max_delete: str | None,
    max_delete_in: tuple[str, ...],
    adopt: bool,
    delete_strangers: bool,
    accept_rollback: bool,
    wait: float,
    rules: tuple[str, ...],
    as_json: bool,
) -> int:
    """Show what `sync NAME` would do, and do none of it."""
    options = SyncOptions(
        max_delete=max_delete,
        adopt=adopt,
        delete_strangers=delete_strangers,
        accept_rollback=accept_rollback,
        max_delete_in=max_delete_in,
        filter=rules or None,
    )
    config = load(root)
    check(config, name, root)
    run = Run(root, name, config.module(name), Talk(quiet=False, as_json=as_json))
    return run.plan(options, wait=wait)
