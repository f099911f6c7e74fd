"""The commands of `huai-server token`, one a module, each named `command` there."""

import click

from huai_program.cli.group import LazyGroup

COMMANDS = ("list", "new", "revoke")


@click.group(cls=LazyGroup, package=__name__, names=COMMANDS)
def command() -> None:
    """Make, list and revoke the tokens that let downstreams see private modules."""
