"""`huai-server key rotate`: replace the private key by a new one."""

from pathlib import Path

import click

from huai_server.cli.console import Console
from huai_server.cli.key_report import comment, show_keys, signing_of
from huai_server.cli.options import console_options
from huai_server.signing.keys import rotate


@click.command()
@click.option(
    "--to",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="NEW.pub",
    help="The new key, where an agent or a command signs: it has to have the private one.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="Let signatures of the old key count as well, until `huai-server key revoke` ends it.",
)
@console_options()
@click.pass_obj
def command(root: Path, to: Path | None, keep: bool, console: Console) -> None:
    """Replace the key in server.toml by a new one.

    Downstreams learn of it from the next commit, and follow by themselves: the old key signs the
    new one. Those that were offline for long follow each step.
    """
    signing = signing_of(root)
    keys = rotate(root, signing, comment(), to=to and to.absolute(), keep=keep)
    show_keys(console, signing.key, keys)
