"""`huai-client sync`: bring trees to the newest commit."""

from functools import partial
from pathlib import Path

import click
import msgspec

from huai_client.cli.console import Console
from huai_client.cli.logfile import LogFile, log_failures
from huai_client.cli.options import (
    choose_modules,
    do_each,
    log_option,
    many_options,
    max_time_option,
    modules_argument,
    sync_options,
    transfer_options,
)
from huai_client.cli.run_report import ConsoleReport
from huai_client.config.load import NO_STATUS_FILES, load
from huai_client.config.mirror import Mirror
from huai_client.inspect.config_check import check_once
from huai_client.run.options import Deadline, SyncOptions
from huai_client.sync.run import Run
from huai_program.cli.options import json_option
from huai_schema.errors import ExitCode, HuaiError


@click.command()
@modules_argument
@many_options("Sync", "synced", parallel=2)
@sync_options
@click.option("--unhold", is_flag=True, help="Resume syncing after an undo, which holds the tree.")
@click.option("-n", "--dry-run", is_flag=True, help="Show the plan and change nothing.")
@transfer_options
@max_time_option
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@log_option
@json_option
@click.pass_obj
def command(
    root: Path,
    names: tuple[str, ...],
    every: bool,
    parallel: int,
    options: SyncOptions,
    wait: float,
    unhold: bool,
    dry_run: bool,
    overrides: dict[str, object],
    bwlimit: int | None,
    max_time: int | None,
    quiet: bool,
    log: LogFile | None,
    as_json: bool,
) -> int:
    """Bring the modules NAME to the upstream's newest commit.

    If there is nothing new, that takes one request. An interrupted run is finished by the next one.

    Modules are synced independently: every line begins with the module's name, and the exit code is
    the worst of all. Codes that the next run may repair by itself (24, 43, 30, 10, 23) count least.
    """
    changes = overrides if bwlimit is None else {**overrides, "bwlimit": bwlimit}
    options = msgspec.structs.replace(options, unhold=unhold, deadline=Deadline.after(max_time))
    config = load(root)
    modules = {
        name: msgspec.structs.replace(config.module(name), **changes)
        for name in choose_modules(config, names, root, every=every, verb="sync")
    }
    config = msgspec.structs.replace(config, modules={**config.modules, **modules})

    def one(name: str) -> ExitCode:
        """Sync one module: check its configuration, run, notify of a failure."""
        mirror = Mirror.of(root, name, modules[name])
        console = Console(quiet=quiet, as_json=as_json, log_file=log)
        notifier = guard = None
        if config.notify is not None and not dry_run:
            from huai_client.cli.notified import last_failure, notifier_of

            notifier = notifier_of(config.notify, mirror, console)
            guard = partial(notifier.run_locked, reason=partial(last_failure, mirror.paths))
        report = ConsoleReport(mirror, console)
        run = Run(mirror, report, guard=guard)
        with log_failures(log, name):
            try:
                check_once(config, name, root)
            except HuaiError as error:
                if notifier:
                    notifier.count_failed_start(error)
                raise
            if dry_run:
                return report.plan(run.plan(options, wait=wait), every=False)
            code = run.sync(options, wait=wait)
            if code == ExitCode.OK and config.notify is not None:
                from huai_client.cli.notified import count_signature

                count_signature(config.notify, mirror, console)
            return code

    console = Console(quiet=quiet, as_json=as_json, log_file=log)
    try:
        return do_each(one, list(modules), every=every, parallel=parallel, console=console)
    finally:
        if config.status != NO_STATUS_FILES and not dry_run:
            from huai_client.cli.status_files import write_status_files

            for key, error in write_status_files(config.status, root, config).items():
                console.error(f"status.{key}: {error.message}; {error.hint}")
