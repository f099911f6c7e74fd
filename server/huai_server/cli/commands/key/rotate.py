"""`huai-server key rotate`: a new private key in the place of the old one."""

from pathlib import Path

import click

from huai_server.cli.console import Console
from huai_server.cli.key_report import comment, show_keys, signing_of
from huai_server.cli.options import json_option
from huai_server.signing.keys import rotate


@click.command()
@click.option(
    "--keep",
    is_flag=True,
    help="Let signatures of the old key count as well, until `huai-server key revoke` ends it.",
)
@json_option
@click.pass_obj
def command(root: Path, keep: bool, as_json: bool) -> None:
    """Replace the private key that server.toml names by a new one.

    Downstreams learn of it from the next commit, and follow by themselves: the old key signs the
    new one. Those that were off for long follow each step.
    """
    signing = signing_of(root)
    show_keys(Console(as_json=as_json), signing.key, rotate(root, signing, comment(), keep=keep))
