"""The commands of `huai-server fallback`, one a module, each named `command` there."""

import click

from huai_program.cli.group import LazyGroup

COMMANDS = ("build", "check", "conf", "remove", "serve")


@click.group(cls=LazyGroup, package=__name__, names=COMMANDS)
def command() -> None:
    """Serve clients that know only rsync, with no disk reads for a listing."""
