"""`huai-server token list`: list tokens."""

from pathlib import Path

import click

from huai_server.cli.console import Console
from huai_server.cli.options import console_options, modules_argument
from huai_server.cli.token_report import token_line, token_values
from huai_server.config.load import load
from huai_server.state.tokens import read_tokens


@click.command()
@modules_argument
@console_options()
@click.pass_obj
def command(root: Path, names: tuple[str, ...], console: Console) -> None:
    """List the tokens that open the modules NAME, or all: their ids, not the tokens themselves."""
    config = load(root)
    for name in names:
        config.module(name)
    for token in read_tokens(root):
        if not names or set(names) & set(token.modules):
            console.event("token", **token_values(token))
            console.result(token_line(token))
