"""`huai-server token revoke`: revoke tokens."""

from pathlib import Path

import click

from huai_server.cli.console import Console
from huai_server.cli.options import console_options
from huai_server.cli.token_report import token_values
from huai_server.state.tokens import revoke_token


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@console_options()
@click.pass_obj
def command(root: Path, ids: tuple[str, ...], console: Console) -> None:
    """Revoke the tokens with these ids at once, also for clients that are connected.

    The id is shown by `huai-server token list`; in a token it follows huai_.
    """
    for token_id in ids:
        token = revoke_token(root, token_id)
        console.event("token_revoked", **token_values(token))
        console.result(f"{token.id}: revoked")
