"""Arguments and options that several commands of `huai-server` share."""

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias

import click

from huai_program.cli import options as base
from huai_program.cli.options import F, json_option, names_of_modules, parse_duration
from huai_schema.errors import HuaiError, worst_exit_code
from huai_server.cli.console import Console
from huai_server.cli.recorded import run_recorded
from huai_server.commit.read_limits import ReadLimits
from huai_server.config.load import ServerConfig, default_root, load
from huai_server.state.errors import storage_error

Command: TypeAlias = Callable[..., Any]


def console_options(*, quiet: bool = False) -> Callable[[Command], Command]:
    """Add `--json`, and with `quiet`, for commands that a timer starts, `--quiet`.

    The function gets the state root, and a `console` for these options.
    """

    def decorate(function: Command) -> Command:
        @json_option
        @click.pass_obj
        @wraps(function)
        def with_console(
            root: Path, /, *, as_json: bool, quiet: bool = False, **others: Any
        ) -> Any:
            return function(root, console=Console(as_json=as_json, quiet=quiet), **others)

        if not quiet:
            return with_console
        return click.option("-q", "--quiet", is_flag=True, help="Print errors only.")(with_console)

    return decorate


_names = names_of_modules(default_root, lambda root: load(root).modules)
module_argument, modules_argument = base.module_argument(_names), base.modules_argument(_names)


def modules_options(function: F) -> F:
    """Add `[NAME]...`, and `--all`, which replaces names."""
    add_all = click.option("--all", "every", is_flag=True, help="Take all modules of server.toml.")
    return modules_argument(add_all(function))


def each_module(
    *, quiet: bool = False, relayed: bool | None = None, attr_trees: bool = False
) -> Callable[[Command], Command]:
    """Add the options of `console_options`; the function is called for each module as `name`.

    It returns an exit code; errors are handled as by `run_all`.  `relayed` and `attr_trees` are as
    for `choose_modules`. `modules_options` must be before this.
    """

    def decorate(function: Command) -> Command:
        @console_options(quiet=quiet)
        @wraps(function)
        def for_each(
            root: Path, /, *, names: tuple[str, ...], every: bool, console: Console, **others: Any
        ) -> int:
            """Call `function` for each chosen module; return the worst exit code."""

            def one(name: str) -> int:
                """Call `function` for a module; a command for timers is recorded."""

                def run() -> int:
                    return int(function(root, name=name, console=console, **others))

                work = click.get_current_context().info_name
                return run_recorded(root, name, work, run) if quiet and work else run()

            chosen = choose_modules(
                load(root), names, every=every, relayed=relayed, attr_trees=attr_trees
            )
            return run_all(one, chosen, console)

        return for_each

    return decorate


def read_limits_options(function: Command) -> Command:
    """Add `--time` and `--rate`, for commands that read content; the function gets `limits`."""

    @click.option(
        "--time",
        "limit",
        callback=parse_duration,
        metavar="TIME",
        help="Stop reading each module after this long (90s, 30m, 2h). The next run continues.",
    )
    @click.option(
        "--rate",
        type=click.IntRange(min=1),
        default=None,
        metavar="BYTES",
        help="Read at most this many bytes a second, on average.",
    )
    @wraps(function)
    def with_limits(*arguments: Any, limit: int | None, rate: int | None, **others: Any) -> int:
        return int(function(*arguments, limits=ReadLimits(limit, rate or 0), **others))

    return with_limits


def choose_modules(
    config: ServerConfig,
    names: tuple[str, ...],
    *,
    every: bool,
    relayed: bool | None = None,
    attr_trees: bool = False,
) -> tuple[str, ...]:
    """Return the modules of the arguments `names`, each once, or with --all (`every`) all by name.

    With `relayed`, --all means only modules that are relayed, or only those that are not; with
    `attr_trees` only those that list from one.  Raises `UnknownModuleError`, and `UsageError`
    without names and --all, or with both.
    """
    if every == bool(names):
        raise click.UsageError("name the modules, or give --all for all of server.toml")
    for name in names:
        config.module(name)
    if not every:
        return tuple(dict.fromkeys(names))
    modules = sorted((config.attr_modules if attr_trees else config.modules).items())
    return tuple(name for name, module in modules if relayed in (None, bool(module.relay)))


def run_all(one: Callable[[str], int], names: tuple[str, ...], console: Console) -> int:
    """Call `one` for each of `names` in order, and return the worst exit code.

    With several names an error is printed, and the next one follows; with one name it is raised.
    """

    def call(name: str) -> int:
        """Call `one`; a `PermissionError` becomes a `StorageError`."""
        try:
            return int(one(name))
        except PermissionError as error:  # the state belongs to another user
            raise storage_error(Path(os.fsdecode(error.filename or name)), error) from error

    if len(names) == 1:
        return call(names[0])
    codes = []
    for name in names:
        try:
            codes.append(call(name))
        except HuaiError as error:
            error.message = f"{name}: {error.message}"
            console.failure(error)
            codes.append(int(error.exit_code))
    return worst_exit_code(codes)
