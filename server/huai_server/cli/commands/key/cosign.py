"""`huai-server key cosign`: show a commit of an upstream elsewhere, and sign it."""

from pathlib import Path

import click

from huai_program.durable import replace_file
from huai_program.packs import TEMPORARY
from huai_server.cli.console import Console
from huai_server.cli.key_report import show_examined, signing_of
from huai_server.cli.options import console_options
from huai_server.signing.cosigned import examine, sign
from huai_server.signing.signer import open_signer
from huai_server.state.errors import storage_errors

_PERMISSIONS = 0o644


@click.command()
@click.argument("request", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Sign it, and write the signature to FILE; otherwise it is only shown.",
)
@console_options()
@click.pass_obj
def command(root: Path, request: Path, output: Path | None, console: Console) -> None:
    """Show the commit in REQUEST, a file of `huai-server key pending`, and sign it.

    Run this on the machine that holds the key, that of [signing] in its server.toml. The commit is
    read back whole, and refused (exit code 57) if a client would refuse it, if its keys do not
    follow from those of the commit signed before, or if its serial was signed before.
    """
    signer = open_signer(signing_of(root))
    if output is None:
        show_examined(console, examine(root, request, signer), signed=False)
        return
    examined, signature = sign(root, request, signer)
    show_examined(console, examined, signed=True)
    with storage_errors(output):
        unfinished = output.with_name(TEMPORARY + output.name)
        replace_file(output, signature, unfinished, permissions=_PERMISSIONS)
    console.result(f"signed: {output}")
