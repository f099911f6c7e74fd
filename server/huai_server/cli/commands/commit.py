"""`huai-server commit`: record the changes in the trees of modules."""

import time
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import click

from huai_program.cli.options import engine_option, wait_option
from huai_server.actions import modules
from huai_server.actions.modules import Committed
from huai_server.cli.after_commit_report import show_after_commit
from huai_server.cli.console import Console
from huai_server.cli.notified import run_and_notify
from huai_server.cli.options import (
    choose_modules,
    console_options,
    modules_options,
    run_all,
)
from huai_server.cli.progress import Progress
from huai_server.cli.recorded import run_recorded
from huai_server.cli.report import (
    commit_line,
    commit_values,
    failure_text,
    list_lines,
    remark_lines,
    show_problems,
)
from huai_server.commit.change_lists import SPELLINGS, read_lists
from huai_server.commit.result import CommitOptions, CommitResult
from huai_server.config.load import load
from huai_server.export.update import ExportUpdate
from huai_server.state.paths import module_places
from huai_server.state.runs import Run, save_run

_Done: TypeAlias = Committed[CommitResult]


@click.command()
@modules_options
@click.option("--allow-empty", is_flag=True, help="Commit even a tree without any entry.")
@click.option(
    "--accept-mounts",
    is_flag=True,
    help="Commit directories as they are now where a file system was mounted over what they held, "
    "or is not mounted any more; otherwise their old entries stay.",
)
@wait_option("another commit")
@click.option(
    "--changes",
    "sources",
    multiple=True,
    metavar="FILE",
    help="Scan only the paths that FILE names (- is standard input): a log of rsync, or a list. "
    "May be given several times.",
)
@click.option(
    "--changes-format",
    "spelling",
    type=click.Choice(SPELLINGS),
    default="auto",
    show_default=True,
    help="How the paths in these files are spelt: one on each line, or ended by NUL; or lines of "
    "rsync --itemize-changes or of its log file, of rsync --verbose, of zfs diff -FH, or of btrfs "
    "receive --dump.",
)
@click.option(
    "--changes-prefix",
    "prefix",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The directory of the module as these files name it: another absolute path, or the "
    "relative one with which their relative paths begin.",
)
@click.option(
    "--at",
    type=click.Path(path_type=Path),
    callback=lambda _context, _option, at: at and at.absolute(),
    metavar="SNAPSHOT",
    help="Read this directory in place of the module's: the module's tree in a snapshot of its "
    "file system.",
)
@engine_option
@click.option(
    "--from-shards",
    "shards",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Use the results that huai-server shard wrote to DIR, and remove them.",
)
@console_options(quiet=True)
def command(
    root: Path,
    /,
    names: tuple[str, ...],
    every: bool,
    sources: tuple[str, ...],
    spelling: str,
    prefix: Path | None,
    console: Console,
    **options: Any,
) -> int:
    """Scan the trees of the modules NAME, or of all, and commit what changed.

    With --changes only the paths that the files name are read, however large the tree is. The next
    commit without --changes finds and reports what the lists missed.

    Exit code 41 means that some paths could not be committed as they are: they are named and keep
    their old entries, and everything else is committed. Modules are committed independently; the
    exit code is the worst of all, also if several steps of one fail.
    """
    if (sources or options["at"]) and (len(names) != 1 or every):
        raise click.UsageError("--changes and --at work on one tree: name one module")
    if (sources or options["at"]) and (options["engine"] or options["shards"]):
        raise click.UsageError("--changes and --at do not go with --engine or --from-shards")
    if options["shards"] and (len(names) != 1 or every or options["engine"]):
        raise click.UsageError("--from-shards needs one module, and no --engine")
    if sources:
        roots = [path for path in (prefix, options["at"]) if path]
        options["lists"] = partial(read_lists, sources, spelling, *roots)
    commit_options = CommitOptions(**options)

    def commit(name: str) -> int:
        return commit_module(console, root, name, commit_options).exit_code

    return run_all(commit, choose_modules(load(root), names, every=every, relayed=False), console)


def commit_module(console: Console, root: Path, name: str, options: CommitOptions) -> _Done:
    """Commit one module, print and record the result, and send a notification if it is due.

    An error of the commit is raised.
    """
    results: list[_Done] = []

    def run() -> int:
        results.append(_commit(console, root, name, options))
        return results[0].exit_code

    def run_counted() -> int:
        return run_and_notify(console, root, name, "commit", run, lambda: failure_text(results[0]))

    run_recorded(root, name, "commit", run_counted, lambda: failure_text(results[0]))
    return results[0]


def _commit(console: Console, root: Path, name: str, options: CommitOptions) -> _Done:
    """Commit one module; print its warnings and the commit, then the updates after it.

    These are the updates of static files, export and attr tree.
    """
    started = time.monotonic()

    def committed(result: CommitResult) -> None:
        """Print a commit, after the warnings about it."""
        seconds = time.monotonic() - started
        for line in list_lines(name, result):
            console.warning(line)
        for line in remark_lines(name, result.remarks):
            console.warning(line)
        show_problems(console, name, result.problems)
        console.event("commit", **commit_values(name, result, seconds))
        console.result(commit_line(name, result, seconds))

    with Progress(console) as progress:
        options = options._replace(on_shards=progress.shards)
        done = modules.commit(root, name, options, committed)
    if done.after.export != ExportUpdate():
        save_run(module_places(root, name), "export", _export_run(done.after.export))
    show_after_commit(console, name, done.after, done.result.head)
    return done


def _export_run(update: ExportUpdate) -> Run:
    """Return the record of the export of a commit that ended now."""
    failure, begun = update.failure, int(time.time() - update.seconds)
    if failure is None:
        return Run(begun, update.seconds, 0)
    return Run(begun, update.seconds, int(failure.exit_code), failure.message)
