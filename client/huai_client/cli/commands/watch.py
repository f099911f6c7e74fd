"""`huai-client watch`: sync whenever an upstream has a new commit."""

from pathlib import Path

import click

from huai_client.cli.console import Console
from huai_client.cli.logfile import LogFile
from huai_client.cli.options import log_option, modules_argument
from huai_program.cli.options import json_option
from huai_program.garbage import collect_usually


@click.command()
@modules_argument
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@log_option
@json_option
@click.pass_obj
def command(
    root: Path, names: tuple[str, ...], quiet: bool, log: LogFile | None, as_json: bool
) -> None:
    """Sync the modules NAME, or all, whenever their upstream has a new commit, until stopped.

    Stays connected to the upstreams, which announce each commit. Modules of upstreams that do not
    are polled. SIGHUP rereads client.toml; its table [watch] has the settings.
    """
    from huai_client.cli.watch.watch import Watch

    console = Console(quiet=quiet, as_json=as_json, log_file=log)
    collect_usually()
    Watch(root, names, console).run()
