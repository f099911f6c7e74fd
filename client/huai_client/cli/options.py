"""Arguments and options that several commands of `huai-client` share."""

import os
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click

from huai_client.cli.console import Console
from huai_client.cli.logfile import LogFile
from huai_client.config.load import (
    FOR_ONE_RUN,
    ClientConfig,
    Module,
    default_root,
    load,
    no_modules,
)
from huai_client.run.options import SyncOptions
from huai_program.cli import options as base
from huai_program.cli.options import F, names_of_modules, parse_duration, with_options
from huai_program.configuration import ConfigError
from huai_program.tables import convert
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.paths import RelPath, rel_path


class PathArgumentError(HuaiError):
    """The argument is not a path of a module."""

    exit_code = ExitCode.USAGE


def parse_path_argument(text: str, dest: str) -> RelPath:
    """Parse a path, relative to the top of the module or below DEST, to one in the module.

    A path with a leading slash begins at the top of the module, as in patterns.  Raises
    `PathArgumentError` if it is not a path of a module.
    """
    raw, top = os.fsencode(text), os.fsencode(dest).rstrip(b"/")
    if raw == top or raw.startswith(top + b"/"):
        raw = raw[len(top) :]
    names = [name for name in raw.split(b"/") if name not in (b"", b".")]
    try:
        return rel_path(b"/".join(names))
    except FormatError as error:
        raise PathArgumentError(
            f"{text}: {error.reason}", hint="give a path relative to the top of the module"
        ) from None


_names = names_of_modules(default_root, lambda root: load(root).modules)
module_argument, modules_argument = base.module_argument(_names), base.modules_argument(_names)
wait_option = base.wait_option("another run")


def many_options(verb: str, done: str, *, parallel: int) -> Callable[[F], F]:
    """Return a decorator for `--all` and `--parallel`, for a command on several modules.

    `verb` and `done` are words of the help, such as "Sync" and "synced"; `parallel` is a default.
    """

    def decorate(function: F) -> F:
        options = (
            click.option(
                "--all", "every", is_flag=True, help=f"{verb} all modules of client.toml."
            ),
            click.option(
                "--parallel",
                type=click.IntRange(1, 64),
                default=parallel,
                show_default=True,
                metavar="N",
                help=f"How many modules are {done} at a time, each in its own process.",
            ),
        )
        return with_options(options, function)

    return decorate


def log_option(function: F) -> F:
    """Add `--log-file`, for runs by a timer; the command gets `log`, a `LogFile` or None."""

    def opened(_: click.Context, __: click.Parameter, path: Path | None) -> LogFile | None:
        """Return the log file, made if missing, or None; raises `LogFileError` if unusable."""
        return LogFile(path.absolute()) if path else None

    return click.option(
        "--log-file",
        "log",
        callback=opened,
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="PATH",
        help="Append all messages to this file, even with --quiet, each with its time. It may be "
        "rotated at any time.",
    )(function)


def _parse_rate(_context: click.Context, _option: click.Parameter, value: str | None) -> int | None:
    """Parse a rate to KiB/s; None without one.  Raises `BadParameter` if it is malformed."""
    if value is None:
        return None
    from huai_client.cli.numbers import kibibytes

    rate = kibibytes(value)
    if rate is None:
        raise click.BadParameter(f"{value!r} is not a rate: write KiB/s, or a unit, such as 10m")
    return rate


def _parse_overrides(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, object]:
    """Parse `texts`, KEY=VALUE, to values by key; raises `BadParameter`.

    Only for keys that may be set for one run.
    """
    values: dict[str, Any] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if sign and key == "rsync_options":
            values.setdefault(key, []).append(value)
        elif sign and key in FOR_ONE_RUN:
            values[key] = int(value) if value.isascii() and value.isdigit() else value
        else:
            keys = ", ".join(("rsync_options", *FOR_ONE_RUN))
            raise click.BadParameter(f"{text!r}: write KEY=VALUE, with one of these keys: {keys}")
    try:
        module = convert("-o", {"url": "", "dest": "", **values}, Module)
    except ConfigError as error:
        raise click.BadParameter(error.message.removeprefix("-o: ")) from None
    return {key: getattr(module, key) for key in values}


def max_time_option(function: F) -> F:
    """Add `--max-time`, for work that can be continued later; its value is in seconds, or None."""
    return click.option(
        "--max-time",
        callback=parse_duration,
        metavar="TIME",
        help="Stop after TIME, such as 90s, 30m or 2h, and keep what is done. If anything is left, "
        "the exit code is 30, and the next run continues from there.",
    )(function)


def sync_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options that `sync` and `plan` share; the function gets `options` and `wait`.

    A malformed limit of deletions raises `DeleteLimitError` before the function is called.
    """

    @wraps(function)
    def with_sync_options(
        *arguments: Any,
        max_delete: str | None,
        max_delete_in: tuple[str, ...],
        adopt: bool,
        delete_extraneous: bool,
        accept_rollback: bool,
        **rest: Any,
    ) -> int:
        """Call `function` with the parsed options, return its code; raises `DeleteLimitError`."""
        if max_delete is not None or max_delete_in:
            from huai_client.plan.deletions import parse_exceptions, parse_limit

            parse_exceptions(max_delete_in)  # raises before any upstream is asked
            if max_delete is not None:
                parse_limit(max_delete)
        options = SyncOptions(
            max_delete=max_delete,
            max_delete_in=max_delete_in,
            adopt=adopt,
            delete_extraneous=delete_extraneous,
            accept_rollback=accept_rollback,
        )
        return function(*arguments, options=options, **rest)

    options = (
        click.option(
            "--max-delete",
            metavar="N|N%",
            help="Allow this many deletions: a count, or a share of the entries (which never stops "
            "fewer than 1000). Default 10%, or what client.toml says.",
        ),
        click.option(
            "--max-delete-in",
            multiple=True,
            metavar="DIR=N|N%",
            help="Allow this many deletions in one directory, instead of what client.toml says; "
            "DIR may be /*, every top-level directory. May be given several times.",
        ),
        click.option(
            "--adopt",
            is_flag=True,
            help="Compare the whole tree with the metadata, as for a tree that was never synced.",
        ),
        click.option(
            "--delete-extraneous",
            is_flag=True,
            help="Where the whole tree is compared, delete whatever no snapshot names.",
        ),
        click.option(
            "--accept-rollback",
            is_flag=True,
            help="Continue if the upstream's serial decreased or jumped, if it serves another "
            "module now, or if a printed list is older than the last one.",
        ),
        wait_option,
    )
    return with_options(options, with_sync_options)


def transfer_options(function: F) -> F:
    """Add `-o` and `--bwlimit`, which override client.toml for one run."""
    options = (
        click.option(
            "-o",
            "overrides",
            callback=_parse_overrides,
            multiple=True,
            metavar="KEY=VALUE",
            help="Use this value of a key of client.toml for one run: streams=4, batch_size=4G, "
            "timeout=60, rsync_options=--compress. May be given several times.",
        ),
        click.option(
            "--bwlimit",
            callback=_parse_rate,
            metavar="RATE",
            help="Limit the total bandwidth of all streams: in KiB/s, or with a unit as in rsync's "
            "option, such as 10m (default 0: no limit).",
        ),
    )
    return with_options(options, function)


def choose_modules(
    config: ClientConfig, names: Sequence[str], root: Path, *, every: bool, verb: str
) -> tuple[str, ...]:
    """Return the modules in `names` without repetitions, or with `every` all, sorted.

    Raises `UnknownModuleError`, `UsageError` with `verb` if neither or both are given, and
    `ConfigError` if client.toml has none.
    """
    if every == bool(names):
        raise click.UsageError(f"name the modules to {verb}, or say --all for all of client.toml")
    if every and not config.modules:
        raise no_modules(root)
    chosen = tuple(sorted(config.modules)) if every else tuple(dict.fromkeys(names))
    for name in chosen:
        config.module(name)  # raises for an unknown one before anything is done
    return chosen


def do_each(
    one: Callable[[str], int], names: Sequence[str], *, every: bool, parallel: int, console: Console
) -> int:
    """Call `one` for each module, and return the worst exit code.

    Each has a process, `parallel` at a time, unless there is a single one without `every`: then an
    error of `one` is raised.
    """
    if len(names) == 1 and not every:
        return one(names[0])
    from huai_client.cli.parallel.run_all import run_all  # not loaded for a single module

    return run_all(one, names, parallel=parallel, console=console)
