"""Arguments and options that several commands of `huai-server` share."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias, TypeVar

import click

from huai_program import spans
from huai_schema.errors import HuaiError, worst_exit_code
from huai_server.cli.console import Console
from huai_server.commit.read_limits import ReadLimits
from huai_server.config.load import ServerConfig, default_root, load

F = TypeVar("F", bound=Callable[..., Any])
Command: TypeAlias = Callable[..., Any]


def console_options(*, quiet: bool = False) -> Callable[[Command], Command]:
    """`--json`, which every command has, and with `quiet`, for what a timer starts, `--quiet`.

    The function gets a `console` for them.
    """

    def decorate(function: Command) -> Command:
        @click.option("--json", "as_json", is_flag=True, help="Print results as lines of JSON.")
        @wraps(function)
        def with_console(*arguments: Any, as_json: bool, quiet: bool = False, **others: Any) -> Any:
            console = Console(as_json=as_json, quiet=quiet)
            return function(*arguments, console=console, **others)

        if not quiet:
            return with_console
        return click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")(
            with_console
        )

    return decorate


def module_argument(function: F) -> F:
    """`NAME`, a module of server.toml."""
    return click.argument("name", shell_complete=_module_names)(function)


def modules_argument(function: F) -> F:
    """`[NAME]...`, modules of server.toml."""
    return click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_module_names)(
        function
    )


def every_option(function: F) -> F:
    """`--all`, instead of names."""
    return click.option("--all", "every", is_flag=True, help="Take all modules of server.toml.")(
        function
    )


def wait_option(what: str) -> Callable[[F], F]:
    """`--wait`, for a command that `what` may keep from the lock of a module."""
    return click.option(
        "--wait",
        type=click.FloatRange(min=0),
        default=0.0,
        metavar="SECONDS",
        help=f"How long to wait for {what} of this module to end.",
    )


def read_limits_options(function: Callable[..., int]) -> Callable[..., int]:
    """`--time` and `--rate`, for what reads content; the function gets `limits` for them."""

    @click.option(
        "--time",
        "limit",
        callback=parse_span,
        metavar="TIME",
        help="Stop reading after so long (90s, 30m, 2h), for each module. The next run goes on.",
    )
    @click.option(
        "--rate",
        type=click.IntRange(min=1),
        default=None,
        metavar="BYTES",
        help="Read no more than so many bytes a second, on average.",
    )
    @wraps(function)
    def with_limits(*arguments: Any, limit: int | None, rate: int | None, **others: Any) -> int:
        return function(*arguments, limits=ReadLimits(limit, rate or 0), **others)

    return with_limits


def parse_span(_context: click.Context, _option: click.Parameter, value: str | None) -> int | None:
    """`30m` to 1800."""
    try:
        return None if value is None else spans.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def chosen(
    config: ServerConfig, names: tuple[str, ...], *, every: bool, relayed: bool | None = None
) -> tuple[str, ...]:
    """The modules that the arguments name; raises `UnknownModuleError` for another one.

    `relayed`: all are those that are relayed, or those that are not; None: both.
    """
    if every == bool(names):
        raise click.UsageError("name the modules, or say --all for all of server.toml")
    for name in names:
        config.module(name)
    if not every:
        return tuple(dict.fromkeys(names))
    modules = sorted(config.modules.items())
    return tuple(name for name, each in modules if relayed in (None, bool(each.relay)))


def each(one: Callable[[str], int], names: tuple[str, ...], console: Console) -> int:
    """Call `one` for all `names`, one after the other; it goes on after a failure.

    Returns the worst exit code (`worst_exit_code`).
    """
    if len(names) == 1:
        return one(names[0])
    codes = []
    for name in names:
        try:
            codes.append(int(one(name)))
        except HuaiError as error:
            error.message = f"{name}: {error.message}"
            console.failure(error)
            codes.append(int(error.exit_code))
    return worst_exit_code(codes)


def _module_names(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Completions of `incomplete`: modules that are not named yet."""
    root = context.find_root().params.get("root") or default_root()
    try:
        names = load(root.absolute()).modules
    except HuaiError:
        return []  # not the moment to complain
    given = context.params.get("names") or ()
    return sorted(name for name in names if name.startswith(incomplete) and name not in given)
