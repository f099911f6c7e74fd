"""`huai-server token new`: make a token."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from huai_program.cli.options import parse_duration
from huai_server.cli.console import Console
from huai_server.cli.options import console_options, modules_argument
from huai_server.cli.token_report import token_values
from huai_server.config.load import load
from huai_server.state.tokens import SCOPES, new_token

if TYPE_CHECKING:
    from huai_server.state.tokens import Scope


@click.command()
@modules_argument
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    default=("read",),
    show_default=True,
    help="What it opens: all of the modules, or their part of /metrics. May be given twice.",
)
@click.option(
    "--expires",
    callback=parse_duration,
    metavar="TIME",
    help="Let it expire after this long (90d, 12h); by default it is valid until revoked.",
)
@click.option("--comment", default="", metavar="TEXT", help="Whose it is, for `token list`.")
@console_options()
@click.pass_obj
def command(
    root: Path,
    names: tuple[str, ...],
    scopes: tuple[str, ...],
    expires: int | None,
    comment: str,
    console: Console,
) -> None:
    """Make a token that opens the modules NAME, and print it once.

    Only a hash of it is kept. It is valid at once, in addition to the existing ones: to rotate,
    make a new token, distribute it, then revoke the old one.
    """
    if not names:
        raise click.UsageError("name the modules that the token opens")
    config = load(root)
    public = [name for name in names if not config.module(name).is_private]
    chosen = cast("tuple[Scope, ...]", scopes)
    token, text = new_token(root, names, chosen, seconds=expires, comment=comment)
    for name in public:
        console.warning(
            f'{name}: visible to everyone, with a token or without: access = "private" hides it'
        )
    console.event("token", **token_values(token), token=text)
    console.result(text)
