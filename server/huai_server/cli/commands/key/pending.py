"""`huai-server key pending`: write out the commit that waits for signatures."""

from pathlib import Path

import click

from huai_server.actions import modules
from huai_server.cli.console import Console
from huai_server.cli.key_report import show_pending
from huai_server.cli.options import console_options


@click.command()
@click.argument("name")
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@console_options()
@click.pass_obj
def command(root: Path, name: str, output: Path, console: Console) -> None:
    """Write the commit of NAME that waits for signatures to a file.

    OUTPUT is readable by its owner only, and holds everything that the commit lists. On the
    cosigner's machine, pass it to `huai-server key cosign`.
    """
    done = modules.hand_out_pending(root, name, output.absolute())
    show_pending(console, done.pending, signatures=done.signatures, needed=done.needed)
    console.result(f"{name}: written to {output}")
