"""`huai-client verify`: compare a tree with the commit applied last."""

from pathlib import Path

import click

from huai_client.arguments import json_option, wait_option
from huai_client.config import load
from huai_client.options import SyncOptions
from huai_client.run import Run, Talk


@click.command()
@click.argument("name")
@click.option("--content", is_flag=True, help="Read every file too, and compare its digest.")
@click.option("--repair", is_flag=True, help="Mend what differs.")
@click.option(
    "--delete-strangers",
    is_flag=True,
    help="With --repair: delete what the applied commit does not name.",
)
@wait_option
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@json_option
@click.pass_obj
def command(
    root: Path,
    name: str,
    content: bool,
    repair: bool,
    delete_strangers: bool,
    wait: float,
    quiet: bool,
    as_json: bool,
) -> int:
    """Compare the tree of NAME with the commit applied last.

    Lists what differs, and ends with exit code 47 if anything does and was not mended.
    """
    run = Run(root, name, load(root).module(name), Talk(quiet=quiet, as_json=as_json))
    options = SyncOptions(delete_strangers=delete_strangers)
    return run.verify(options, content=content, repair=repair, wait=wait)
