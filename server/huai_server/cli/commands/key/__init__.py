"""The commands of `huai-server key`, one a module, each named `command` there."""

import click

from huai_program.cli.group import LazyGroup

COMMANDS = ("attach", "configure", "cosign", "new", "pending", "revoke", "rotate", "show")


@click.group(cls=LazyGroup, package=__name__, names=COMMANDS)
def command() -> None:
    """Make, show and replace the keys that sign commits, and sign elsewhere."""
