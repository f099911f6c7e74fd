"""`huai-server shards`: list the shards of the next commit."""

from pathlib import Path

import click

from huai_schema.paths import path_as_text, show
from huai_server.actions import modules
from huai_server.cli.console import Console
from huai_server.cli.options import console_options, module_argument


@click.command()
@module_argument
@click.option("-0", "--null", is_flag=True, help="End each path with NUL, and do not quote it.")
@click.option(
    "--where",
    metavar="LABEL",
    help="Only the directories with this label; '' for those without one.",
)
@console_options()
def command(root: Path, /, name: str, console: Console, *, null: bool, where: str | None) -> int:
    """List the directories to scan as shards for the next commit of the module NAME.

    --json has the base of the next commit; of each directory its label, and its entries there.
    """
    base, planned = modules.plan_shards(root, name, where)
    for path, (entries, label) in planned.items():
        values = {"path": path_as_text(path), "base": base, "entries": entries, "where": label}
        console.event("planned_shard", module=name, **values)
        if null and not console.as_json:
            click.echo(path + b"\0", nl=False)
        else:
            console.result(show(path))
    return 0
