"""`huai-server key revoke`: stop accepting a key that does not sign any more."""

from pathlib import Path

import click

from huai_native._native import parse_public_key
from huai_schema.errors import FormatError
from huai_server.cli.console import Console
from huai_server.cli.key_report import show_keys, signing_of
from huai_server.cli.options import console_options
from huai_server.signing.keys import revoke


@click.command()
@click.argument("key")
@console_options()
@click.pass_obj
def command(root: Path, key: str, console: Console) -> None:
    """Stop accepting signatures by KEY, "ssh-ed25519 AAAA…".

    For a key that `huai-server key rotate --keep` left, or one that was stolen.
    """
    signing = signing_of(root)
    try:
        public = parse_public_key(key)
    except FormatError as error:
        raise click.BadParameter(error.message) from None
    show_keys(console, signing.key, revoke(root, signing, public))
