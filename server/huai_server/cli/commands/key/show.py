"""`huai-server key show`: show the keys that downstreams need."""

from pathlib import Path

import click

from huai_server.cli.console import Console
from huai_server.cli.key_report import show_keys, signing_of
from huai_server.cli.options import console_options
from huai_server.signing.keys import open_keys


@click.command()
@console_options()
@click.pass_obj
def command(root: Path, console: Console) -> None:
    """Show the keys whose signatures count.

    Of each, shows its fingerprint, its line for a file of allowed signers (`git verify-commit`,
    `ssh-keygen -Y verify`), and the line of client.toml for downstreams.
    """
    show_keys(console, signing_of(root).key, open_keys(root, signing_of(root)))
