"""The command line of `huai-server`: arguments in, results and exit codes out.

Results go to standard output (with `--json` a line of JSON each), everything else to standard
error.  Only the module of the command that runs is imported: one that is run a thousand times a day
does not pay for the others.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from huai_program.configuration import closest
from huai_program.ending import conclude, leave
from huai_program.output import Output
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
    "probe",
    "publish",
    "relay",
    "remove",
    "scrub",
    "serve",
    "status",
    "token",
    "watch",
)
"""Each a module of `huai_server.cli.commands`, as --help lists them."""


class LazyGroup(click.Group):
    """Finds each command in the module that has its name."""

    def __init__(self, *args: Any, package: str, names: Sequence[str], **settings: Any) -> None:
        """`names` are modules of `package`, each with a `command`, as --help lists them."""
        super().__init__(*args, **settings)
        self._package = package
        self._names = names

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """All names."""
        return list(self._names)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; an unknown name is answered with the one that was meant."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in self._names:
            ctx.fail(f"there is no command {name!r}; {closest(name, self._names)}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command, imported now."""
        if cmd_name not in self._names:
            return None
        found = import_module(f"{self._package}.{cmd_name}").command
        assert isinstance(found, click.Command)  # noqa: S101 - the type of a module's attribute
        return found


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
    leave(output.code(code))


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
