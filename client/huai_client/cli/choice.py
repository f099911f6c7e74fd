"""Chooses the modules of a command, and runs it for each."""

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from huai_client.cli.console import Console
from huai_client.config.load import ClientConfig, no_modules


def choose_modules(
    config: ClientConfig, names: Sequence[str], root: Path, *, every: bool, verb: str
) -> tuple[str, ...]:
    """Return the modules in `names` without repetitions, or with `every` all of client.toml.

    `verb` is for the error if neither or both are given.
    """
    if every == bool(names):
        raise click.UsageError(f"name the modules to {verb}, or say --all for all of client.toml")
    if every and not config.modules:
        raise no_modules(root)
    chosen = tuple(sorted(config.modules)) if every else tuple(dict.fromkeys(names))
    for name in chosen:
        config.module(name)  # raises for an unknown one before anything is done
    return chosen


def do_each(
    one: Callable[[str], int], names: Sequence[str], *, every: bool, parallel: int, console: Console
) -> int:
    """Call `one` for each module, each in a process if several; return the worst exit code."""
    if len(names) == 1 and not every:
        return one(names[0])
    from huai_client.cli.parallel import run_all  # not loaded for a single module

    return run_all(one, names, parallel=parallel, console=console)
