"""`huai-server digest`: compute the digests that commits left out."""

import time
from pathlib import Path

import click

from huai_program.cli.options import engine_option
from huai_program.humanize import counted
from huai_server.actions import modules
from huai_server.cli.after_commit_report import show_after_commit
from huai_server.cli.console import Console
from huai_server.cli.options import (
    each_module,
    modules_options,
    read_limits_options,
)
from huai_server.cli.progress import Progress
from huai_server.cli.report import problem_values, show_problems
from huai_server.commit.read_limits import ReadLimits


@click.command()
@modules_options
@read_limits_options
@engine_option
@each_module(quiet=True, relayed=False)
def command(root: Path, name: str, limits: ReadLimits, engine: str, console: Console) -> int:
    """Compute the digests that commits of the modules NAME, or of all, left out.

    For digest = "later" in server.toml. The newest files are read first, and only while no other
    process uses the disk. The commit that follows adds digests and changes nothing else. A run that
    was killed is continued by the next one.

    Exit code 41 means that some files could not be read, or changed meanwhile: they have no digest
    yet.
    """
    started = time.monotonic()
    with Progress(console):
        done = modules.digest(root, name, limits, engine)
    result = done.result
    spent = time.monotonic() - started
    show_problems(console, name, result.problems)
    console.event(
        "digest",
        module=name,
        changed=result.changed,
        commit=result.head.commit,
        serial=result.head.info.serial,
        missing=result.missing,
        hashed_files=result.hashed_files,
        hashed_bytes=result.hashed_bytes,
        problems=problem_values(result.problems),
        seconds=round(spent, 3),
    )
    read = counted(result.hashed_files, "file")
    left = f"{counted(result.missing, 'file')} without a digest"
    console.result(f"{name}: {read} read, {left}, serial {result.head.info.serial} ({spent:.1f} s)")
    show_after_commit(console, name, done.after, result.head)
    return done.exit_code
