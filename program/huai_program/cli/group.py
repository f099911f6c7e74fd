"""Groups of commands, and a program from its arguments to its exit code.

Only the module of the command that runs is imported: importing all would slow down each poll.
"""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from huai_program.configuration import closest
from huai_program.ending import conclude, leave
from huai_program.output import Output

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Group(click.Group):
    """A group that suggests a command for an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does; raises `UsageError` for an unknown name, with the closest one."""
        name, names = args[0] if args else "", self.list_commands(ctx)
        if name and not name.startswith("-") and name not in names:
            ctx.fail(f"unknown command {name!r};  {closest(name, names)}")
        return super().resolve_command(ctx, args)


class LazyGroup(Group):
    """A group that finds each command in the module with its name."""

    def __init__(self, *args: Any, package: str, names: Sequence[str], **settings: Any) -> None:
        """List modules of `package`, each with a `command`, in the order of --help."""
        super().__init__(*args, **settings)
        self._package = package
        self._names = names

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """Return the names of all commands, in the order of --help."""
        return list(self._names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command; None for an unknown name."""
        if cmd_name not in self._names:
            return None
        command = import_module(f"{self._package}.{cmd_name}").command
        assert isinstance(command, click.Command)  # noqa: S101 - the type of a module's attribute
        return command


def run_and_exit(
    name: str, command_line: click.Command, end: Callable[[int], NoReturn] = leave
) -> None:
    """Run a program, print its error if it fails, and call `end` with its exit code."""
    output = Output()
    code = conclude(
        name,
        lambda: command_line.main(prog_name=name, standalone_mode=False),
        usage_errors=(click.ClickException,),
        aborts=(KeyboardInterrupt, click.Abort),
        as_json="--json" in sys.argv,
    )
    end(output.code(code))
