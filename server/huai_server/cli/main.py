"""The command line of `huai-server`: arguments in, results and exit codes out.

Results go to standard output (with `--json` a line of JSON each), everything else to standard
error.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import click

from huai_program.cli.group import SETTINGS, LazyGroup, run_and_exit
from huai_program.ending import leave
from huai_server.config.load import default_root

COMMANDS = (
    "add",
    "announce",
    "audit",
    "check",
    "commit",
    "completion",
    "digest",
    "export",
    "fallback",
    "key",
    "maintain",
    "notify",
    "probe",
    "publish",
    "relay",
    "remove",
    "scrub",
    "serve",
    "shard",
    "shards",
    "status",
    "token",
    "watch",
)
"""The modules of `huai_server.cli.commands`, in the order of --help."""


def main(end: Callable[[int], NoReturn] = leave) -> None:
    """Run `huai-server` with the arguments of this process, and call `end` with its exit code."""
    run_and_exit("huai-server", command_line, end)


@click.group(
    cls=LazyGroup,
    package="huai_server.cli.commands",
    names=COMMANDS,
    context_settings=SETTINGS,
)
@click.version_option(package_name="huai")
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False, readable=False),
    envvar="HUAI_ROOT",
    default=None,
    show_envvar=True,
    help="The folder that holds server.toml and all state; default /var/lib/huai, for other users "
    "than root ~/.local/state/huai if that does not exist.",
)
@click.pass_context
def command_line(context: click.Context, root: Path | None) -> None:
    """Commit the metadata of file mirrors to git, and serve it to downstreams.

    Run `huai-server commit NAME` after each update of a mirror, and `huai-server serve` all the
    time.
    """
    context.obj = (root or default_root()).absolute()
