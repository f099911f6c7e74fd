"""`huai-client undo`: bring a tree back to the commit before the last sync."""

from pathlib import Path

import click

from huai_client.cli.console import Console
from huai_client.cli.options import module_argument, wait_option
from huai_client.cli.run_report import ConsoleReport
from huai_client.config.load import load
from huai_client.config.mirror import Mirror
from huai_client.sync.run import Run
from huai_program.cli.options import json_option


@click.command()
@module_argument
@wait_option
@click.option("-n", "--dry-run", is_flag=True, help="Show the plan and change nothing.")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@json_option
@click.pass_obj
def command(root: Path, name: str, wait: float, dry_run: bool, quiet: bool, as_json: bool) -> int:
    """Bring the tree of NAME back to the commit that was applied before the last sync.

    Takes what that sync deleted or replaced out of the trash (see `trash` in client.toml), and
    changes nothing if any of it is missing. The tree is then held: `sync` leaves it alone until
    `sync --unhold`.
    """
    mirror = Mirror.of(root, name, load(root).module(name))
    report = ConsoleReport(mirror, Console(quiet=quiet, as_json=as_json))
    run = Run(mirror, report)
    return report.plan(run.plan_undo(wait=wait), every=True) if dry_run else run.undo(wait=wait)
