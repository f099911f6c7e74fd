"""`huai-client plan`: show the plan of a sync."""

from pathlib import Path

import click
import msgspec

from huai_client.cli.console import Console
from huai_client.cli.options import (
    choose_modules,
    do_each,
    many_options,
    modules_argument,
    sync_options,
)
from huai_client.cli.run_report import ConsoleReport
from huai_client.config.load import load
from huai_client.config.mirror import Mirror
from huai_client.inspect.config_check import check_config
from huai_client.run.options import SyncOptions
from huai_client.sync.run import Run
from huai_program.cli.options import json_option
from huai_schema.errors import ExitCode


@click.command()
@modules_argument
@many_options("Plan for", "planned", parallel=2)
@sync_options
@click.option(
    "--filter",
    "rules",
    multiple=True,
    metavar="RULE",
    help="Plan for this filter instead of the configured one, to see how much it selects: "
    "'- *.iso', '+ /dists/', 'merge FILE'. May be given several times; the order counts.",
)
@click.option(
    "--list",
    "listed",
    is_flag=True,
    help="Show every operation, not only the first 20; --json always has them all.",
)
@json_option
@click.pass_obj
def command(
    root: Path,
    names: tuple[str, ...],
    every: bool,
    parallel: int,
    options: SyncOptions,
    wait: float,
    rules: tuple[str, ...],
    listed: bool,
    as_json: bool,
) -> int:
    """Show what `sync` would do to the modules NAME, without doing it.

    With several modules, every line begins with the module's name, and the exit code is the worst
    of all.
    """
    options = msgspec.structs.replace(options, filter=rules or None)
    config = load(root)
    console = Console(quiet=False, as_json=as_json)

    def one(name: str) -> ExitCode:
        """Plan a sync of one module, and print the plan."""
        check_config(config, name, root)
        mirror = Mirror.of(root, name, config.module(name))
        report = ConsoleReport(mirror, console)
        return report.plan(Run(mirror, report).plan(options, wait=wait), every=listed)

    chosen = choose_modules(config, names, root, every=every, verb="plan for")
    return do_each(one, chosen, every=every, parallel=parallel, console=console)
