"""Arguments and options that both programs share."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from huai_program import durations
from huai_schema.errors import HuaiError

F = TypeVar("F", bound=Callable[..., Any])
Complete = Callable[[click.Context, click.Parameter, str], list[str]]
"""A function that returns a shell's suggestions for the beginning of a word."""


def names_of_modules(
    default_root: Callable[[], Path], names: Callable[[Path], Iterable[str]]
) -> Complete:
    """Return a function that completes the modules of `--root` or `default_root`, less those typed.

    `names` returns the modules of a root.
    """

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        """Return sorted names that begin with `incomplete`; none after a `HuaiError`."""
        root = context.find_root().params.get("root") or default_root()
        try:
            modules = names(root.absolute())
        except HuaiError:
            return []  # completion must not print errors
        typed = context.params.get("names") or ()
        return sorted(name for name in modules if name.startswith(incomplete) and name not in typed)

    return complete


def module_argument(complete: Complete) -> Callable[[F], F]:
    """Return a decorator for the argument `NAME`, a module."""
    return click.argument("name", shell_complete=complete)


def modules_argument(complete: Complete) -> Callable[[F], F]:
    """Return a decorator for the argument `[NAME]...`, modules."""
    return click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print results as lines of JSON."
)


engine_option = click.option(
    "--engine",
    default="",
    metavar="URL",
    help="Read the tree by other processes: local://N starts N on this machine, dask://HOST:PORT "
    "uses the workers of Dask, mpi:// the ranks of this MPI job.",
)


def parse_duration(
    _context: click.Context, _option: click.Parameter, value: str | None
) -> int | None:
    """Convert a duration to seconds, such as `30m` to 1800; None for a missing option.

    Raises `BadParameter` if it is malformed.
    """
    try:
        return None if value is None else durations.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def wait_option(holder: str) -> Callable[[F], F]:
    """Return a decorator for `--wait`, in seconds (0 by default), for a command that needs a lock.

    `holder` names in the help what may have the lock.
    """
    return click.option(
        "--wait",
        default="0",
        callback=parse_duration,
        metavar="TIME",
        help=f"How long to wait for {holder} of this module to end (90s, 30m, 2h).",
    )


def with_options(options: Sequence[Callable[[F], F]], function: F) -> F:
    """Return `function` with options, which --help lists in this order."""
    for option in reversed(options):
        function = option(function)
    return function
