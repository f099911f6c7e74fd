"""`huai-server fallback build`: make or update an attr tree by hand."""

from pathlib import Path

import click

from huai_server.cli.after_commit_report import show_attr_tree
from huai_server.cli.console import Console
from huai_server.cli.options import console_options, module_argument
from huai_server.config.load import load
from huai_server.fallback.attr.ensure import ensure
from huai_server.fallback.attr.tree import attr_tree
from huai_server.fallback.conf import clashing_names


@click.command()
@module_argument
@click.option("--rebuild", is_flag=True, help="Make a new attr tree even if the old one is whole.")
@console_options()
@click.pass_obj
def command(root: Path, name: str, rebuild: bool, console: Console) -> None:
    """Bring the attr tree of module NAME to its newest commit.

    Changes what differs, or makes a new attr tree where that is impossible or another program has
    changed the old one; connected clients finish on the old one. After the first time, `huai-server
    commit` does this by itself. An attr tree that belongs to another state root, or lists another
    path than the module's, is left alone (53); --rebuild accepts the new path.
    """
    config = load(root)
    config.module(name)
    if clash := clashing_names(config.fallback_modules).get(name):
        raise clash
    result = ensure(attr_tree(root, config, name), rebuild=rebuild, look=True)
    show_attr_tree(console, name, result)
