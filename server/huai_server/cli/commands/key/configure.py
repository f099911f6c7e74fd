"""`huai-server key configure`: apply other cosigners, or another threshold."""

from pathlib import Path

import click

from huai_server.cli.console import Console
from huai_server.cli.key_report import show_keys, signing_of
from huai_server.cli.options import console_options
from huai_server.signing.keys import configure


@click.command()
@console_options()
@click.pass_obj
def command(root: Path, console: Console) -> None:
    """Apply the cosigners and the threshold of server.toml.

    Run this after a change of `cosigners` or `threshold`. All keys in server.toml sign the change,
    and among them must be as many of the present keys as commits need now.
    """
    signing = signing_of(root)
    show_keys(console, signing.key, configure(root, signing))
