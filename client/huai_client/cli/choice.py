"""Which modules a command is for, and the way from doing it for each to one exit code."""

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from huai_client.cli.console import Console
from huai_client.config.load import ClientConfig, no_modules


def choose_modules(
    config: ClientConfig, names: Sequence[str], root: Path, *, every: bool, verb: str
) -> tuple[str, ...]:
    """The modules in `names`, each once, or with `every` all of client.toml by name.

    `verb` is for the message if neither or both are given.
    """
    if every == bool(names):
        raise click.UsageError(f"name the modules to {verb}, or say --all for all of client.toml")
    if every and not config.modules:
        raise no_modules(root)
    chosen = tuple(sorted(config.modules)) if every else tuple(dict.fromkeys(names))
    for name in chosen:
        config.module(name)  # an unknown one is told before anything is done
    return chosen


def do_each(
    one: Callable[[str], int], names: Sequence[str], *, every: bool, parallel: int, console: Console
) -> int:
    """Call `one` for each module, for several in a process each; returns the worst exit code."""
    if len(names) == 1 and not every:
        return one(names[0])
    from huai_client.cli.parallel import run_all  # a single module need not pay for it

    return run_all(one, names, parallel=parallel, console=console)
