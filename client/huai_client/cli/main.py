"""The command line of `huai-client`: arguments in, results and exit codes out.

Results go to standard output (with `--json` as lines of JSON), messages to standard error.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import click

from huai_client.config.load import default_root
from huai_program.cli.group import SETTINGS, LazyGroup, run_and_exit
from huai_program.ending import leave

COMMANDS = (
    "add",
    "completion",
    "diff",
    "doctor",
    "log",
    "modules",
    "notify",
    "plan",
    "remove",
    "status",
    "sync",
    "undo",
    "verify",
    "watch",
    "why",
)
"""The modules of `huai_client.cli.commands`, as --help lists them."""


def main(end: Callable[[int], NoReturn] = leave) -> None:
    """Run `huai-client` with the arguments of this process, and call `end` with its exit code."""
    run_and_exit("huai-client", command_line, end)


@click.group(
    cls=LazyGroup, package="huai_client.cli.commands", names=COMMANDS, context_settings=SETTINGS
)
@click.version_option(package_name="huai")
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False, readable=False),
    envvar="HUAI_CLIENT_ROOT",
    default=None,
    show_envvar=True,
    help="The folder that holds client.toml and all state; default /var/lib/huai-client, for other "
    "users than root ~/.local/state/huai-client.",
)
@click.pass_context
def command_line(context: click.Context, root: Path | None) -> None:
    """Keep mirrors in step with a huai upstream, at the cost of what changed.

    Run `huai-client sync NAME` from cron, a timer or tunasync.
    """
    context.obj = (root or default_root()).absolute()
