"""The command line of `huai-server`: arguments in, results and exit codes out.

Results go to standard output (with `--json` a line of JSON each), everything else to standard
error.  Only the module of the command that runs is imported.
"""

import sys
from pathlib import Path

import click

from huai_schema.program.ending import conclude
from huai_schema.program.output import Output
from huai_schema.program.signals import leave_quietly
from huai_server.cli.lazy import LazyGroup
from huai_server.config import default_root

COMMANDS = (
    "add",
    "announce",
    "check",
    "commit",
    "completion",
    "fallback",
    "remove",
    "serve",
    "status",
)
"""Each a module of `huai_server.cli.commands`, as --help lists them."""


def main() -> None:
    """The program."""
    output = Output()
    code = conclude(
        "huai-server",
        lambda: command_line.main(prog_name="huai-server", standalone_mode=False),
        usage_error=click.ClickException,
        abort=click.Abort,
        as_json="--json" in sys.argv,
    )
    leave_quietly()
    sys.exit(output.code(code))


@click.group(
    cls=LazyGroup,
    package="huai_server.cli.commands",
    names=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
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
