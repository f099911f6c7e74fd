"""`huai-server key attach`: add a signature to the commit that waits for it."""

from pathlib import Path

import click

from huai_program.cli.options import wait_option
from huai_schema.codec.signing import SIGNATURE_FILE_BYTES
from huai_schema.errors import ExitCode
from huai_server.actions import modules
from huai_server.cli.after_commit_report import show_after_commit
from huai_server.cli.console import Console
from huai_server.cli.key_report import show_pending
from huai_server.cli.options import console_options
from huai_server.state.errors import storage_errors


@click.command()
@click.argument("name")
@click.argument("signature", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@wait_option("a commit")
@console_options()
@click.pass_obj
def command(root: Path, name: str, signature: Path, wait: float, console: Console) -> int:
    """Add a SIGNATURE to the commit of NAME that waits for it.

    The file is made by `huai-server key cosign`. With the last signature that is needed, the commit
    is published. A signature of anything else, or by a key that does not count, is refused (exit
    code 57).
    """
    with storage_errors(signature), signature.open("rb") as file:
        data = file.read(SIGNATURE_FILE_BYTES)
    done = modules.attach_signature(root, name, data, wait=wait)
    show_pending(console, done.pending, signatures=done.signatures, needed=done.needed)
    if done.head is None:
        return ExitCode.OK
    console.result(f"{name}: published, commit {done.head.commit}")
    show_after_commit(console, name, done.after, done.head)
    return done.after.exit_code
