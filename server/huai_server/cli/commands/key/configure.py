"""`huai-server key configure`: other cosigners, or another threshold."""

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
    """Make the keys that count those of server.toml, and its threshold theirs.

    To be called after a change of `cosigners` or `threshold`. All keys that server.toml names sign
    it, and as many of the present ones have to be among them as commits need now.
    """
    signing = signing_of(root)
    show_keys(console, signing.key, configure(root, signing))
