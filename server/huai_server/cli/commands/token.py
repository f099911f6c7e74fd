"""`huai-server token`: make, list and revoke the tokens for private modules."""

import time
from datetime import UTC, datetime
from pathlib import Path

import click

from huai_program.cli.group import Group
from huai_program.cli.options import parse_duration
from huai_server.cli.console import Console
from huai_server.cli.options import console_options, modules_argument
from huai_server.config.load import load
from huai_server.state.tokens import SCOPES, Scope, Token, new_token, read_tokens, revoke_token


@click.group(cls=Group)
def command() -> None:
    """Make, list and revoke the tokens that let downstreams see private modules."""


@command.command("list")
@modules_argument
@console_options()
def list_tokens(root: Path, names: tuple[str, ...], console: Console) -> None:
    """List the tokens that open the modules NAME, or all: their ids, not the tokens themselves."""
    config = load(root)
    for name in names:
        config.module(name)
    for token in read_tokens(root):
        if not names or set(names) & set(token.modules):
            console.event("token", **_token_values(token))
            console.result(_token_line(token))


@command.command()
@modules_argument
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    default=("read",),
    show_default=True,
    help="What the token opens: all of the modules, or their part of /metrics or /operator. May be "
    "given twice.",
)
@click.option(
    "--expires",
    callback=parse_duration,
    metavar="TIME",
    help="Let the token expire after TIME (90d, 12h); by default it is valid until revoked.",
)
@click.option("--comment", default="", metavar="TEXT", help="A note that `token list` shows.")
@console_options()
def new(
    root: Path,
    names: tuple[str, ...],
    scopes: tuple[Scope, ...],
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
    token, text = new_token(root, names, scopes, seconds=expires, comment=comment)
    for name in public:
        console.warning(
            f'{name}: visible to everyone, with a token or without: access = "private" hides it'
        )
    console.event("token", **_token_values(token), token=text)
    console.result(text)


@command.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@console_options()
def revoke(root: Path, ids: tuple[str, ...], console: Console) -> None:
    """Revoke the tokens with these ids at once, also for clients that are connected.

    The id is shown by `huai-server token list`; in a token it follows huai_.
    """
    for token_id in ids:
        token = revoke_token(root, token_id)
        console.event("token_revoked", **_token_values(token))
        console.result(f"{token.id}: revoked")


def _token_values(token: Token) -> dict[str, object]:
    """Return a token for JSON, without its secret."""
    return {
        "id": token.id,
        "modules": list(token.modules),
        "scopes": list(token.scopes),
        "created": token.created,
        "expires": token.expires,
        "expired": not token.is_valid(time.time()),
        "comment": token.comment,
    }


def _token_line(token: Token) -> str:
    """Return a token as a line, without its secret."""
    ends = "does not expire"
    if token.expires is not None:
        day = datetime.fromtimestamp(token.expires, UTC)
        ends = f"{'until' if token.is_valid(time.time()) else 'EXPIRED'} {day:%Y-%m-%d %H:%M} UTC"
    parts = [token.id, ",".join(token.modules), ",".join(token.scopes), ends, token.comment]
    return "  ".join(part for part in parts if part)
