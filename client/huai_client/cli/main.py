"""The command line of `huai-client`: arguments in, results and exit codes out.

Results go to standard output (with `--json` a line of JSON each), talk to standard error.
Only the module of the command that runs is imported: a sync that finds nothing new must not
pay for the others.
"""

import sys
from importlib import import_module
from pathlib import Path

import click

from huai_client.config.load import default_root
from huai_program.configuration import closest
from huai_program.ending import conclude, leave
from huai_program.output import Output

COMMANDS = (
    "add",
    "completion",
    "diff",
    "doctor",
    "log",
    "modules",
    "plan",
    "remove",
    "status",
    "sync",
    "undo",
    "verify",
    "watch",
    "why",
)
"""Each a module of `huai_client.cli.commands`, as --help lists them."""


class LazyGroup(click.Group):
    """Finds each command in the module that has its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """All names."""
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the name that was meant."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in COMMANDS:
            ctx.fail(f"there is no command {name!r}; {closest(name, COMMANDS)}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        found = import_module(f"huai_client.cli.commands.{cmd_name}").command
        assert isinstance(found, click.Command)  # noqa: S101 - the type of a module's attribute
        return found


def main() -> None:
    """The program."""
    output = Output()
    code = conclude(
        "huai-client",
        lambda: command_line.main(prog_name="huai-client", standalone_mode=False),
        usage_error=click.ClickException,
        abort=click.Abort,
        as_json="--json" in sys.argv,
    )
    leave(output.code(code))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
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
