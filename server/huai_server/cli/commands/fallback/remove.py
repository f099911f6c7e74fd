"""`huai-server fallback remove`: delete attr trees."""

from pathlib import Path

import click

from huai_program.configuration import UnknownModuleError
from huai_schema.codec.descriptor import check_module
from huai_schema.errors import ExitCode, FormatError
from huai_server.cli.console import Console
from huai_server.cli.options import console_options, modules_argument
from huai_server.config.load import load
from huai_server.fallback.attr.remove import delete_attr_tree, exists, forgotten
from huai_server.fallback.attr.tree import attr_tree


@click.command()
@modules_argument
@click.option("--all", "every", is_flag=True, help="All attr trees of this state root.")
@console_options()
@click.pass_obj
def command(root: Path, names: tuple[str, ...], every: bool, console: Console) -> int:
    """Delete the attr tree of NAME, and free its memory.

    The module need not be configured any more. New clients are refused at once. What a client still
    reads stays until it is done (exit code 53), and is then deleted by `fallback serve`, the next
    commit, or another run of this command. `fallback serve` makes a new attr tree for a module that
    is still configured: set its fallback.kind to "off" first.
    """
    if bool(names) == every:
        raise click.UsageError("give the NAME of a module, or --all")
    config, code = load(root), ExitCode.OK
    for name in names or [tree.name for tree in forgotten(root, config, ())]:
        _check_name(name)
        tree = attr_tree(root, config, name)
        existed = exists(tree.fallback)
        is_gone = delete_attr_tree(tree)
        code = code if is_gone else ExitCode.FALLBACK
        console.event("attr_removed", module=name, existed=existed, gone=is_gone)
        if not existed:
            console.result(f"{name}: no attr tree")
        else:
            rest = "" if is_gone else "; clients still read it: run this again to delete the rest"
            console.result(f"{name}: attr tree removed{rest}")
    return code


def _check_name(name: str) -> None:
    try:
        check_module(name)
    except FormatError as error:
        raise UnknownModuleError(error.reason, hint="give the name of a module") from None
