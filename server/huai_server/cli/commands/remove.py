"""`huai-server remove`: remove a module from the configuration."""

from pathlib import Path

import click

from huai_server.actions import modules
from huai_server.cli.console import Console
from huai_server.cli.options import console_options, module_argument


@click.command()
@module_argument
@click.option("--purge", is_flag=True, help="Delete its metadata repository and caches too.")
@console_options()
def command(root: Path, name: str, purge: bool, console: Console) -> None:
    """Remove module NAME; its tree is never touched.

    The metadata stay unless --purge is given, so that a module that is added again continues with
    its serial numbers.
    """
    removed = modules.remove(root, name, purge=purge)
    if removed.attr_tree_in_use:
        console.error(
            f"{name}: clients still read its attr tree: when they are done, run "
            f"huai-server fallback remove {name}"
        )
    remainder = f"; its metadata stays in {removed.kept_folder}" if removed.kept_folder else ""
    console.event("removed", module=name, purged=purge)
    console.result(f"{name}: removed{remainder}")
