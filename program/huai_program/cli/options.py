"""Arguments and options that commands of both programs have."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from huai_program import durations
from huai_schema.errors import HuaiError

F = TypeVar("F", bound=Callable[..., Any])
Complete = Callable[[click.Context, click.Parameter, str], list[str]]
"""Returns what a shell offers for the beginning of a word."""


def names_of_modules(
    default_root: Callable[[], Path], names: Callable[[Path], Iterable[str]]
) -> Complete:
    """Complete to the modules of a state root that are not on the command line yet."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        root = context.find_root().params.get("root") or default_root()
        try:
            known = names(root.absolute())
        except HuaiError:
            return []  # not the moment to complain
        given = context.params.get("names") or ()
        return sorted(name for name in known if name.startswith(incomplete) and name not in given)

    return complete


def module_argument(complete: Complete) -> Callable[[F], F]:
    """`NAME`, a module."""
    return click.argument("name", shell_complete=complete)


def modules_argument(complete: Complete) -> Callable[[F], F]:
    """`[NAME]...`, modules."""
    return click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print results as lines of JSON."
)
"""Every command has it."""


def parse_duration(
    _context: click.Context, _option: click.Parameter, value: str | None
) -> int | None:
    """`30m` to 1800."""
    try:
        return None if value is None else durations.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def wait_option(what: str) -> Callable[[F], F]:
    """`--wait`, for a command that `what` may keep from the lock of a module."""
    return click.option(
        "--wait",
        default="0",
        callback=parse_duration,
        metavar="TIME",
        help=f"How long to wait for {what} of this module to end (90s, 30m, 2h).",
    )


def with_options(options: Sequence[Callable[[F], F]], function: F) -> F:
    """`function` with options that --help lists in this order."""
    for option in reversed(options):
        function = option(function)
    return function
