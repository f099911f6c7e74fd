"""`huai-server shard`: scan one directory of a tree for a later commit."""

import os
from pathlib import Path

import click

from huai_program.humanize import counted
from huai_schema.paths import show
from huai_server.actions import modules
from huai_server.cli.console import Console
from huai_server.cli.options import console_options, module_argument
from huai_server.cli.progress import Progress


@click.command()
@module_argument
@click.argument("path")
@click.option(
    "--base",
    metavar="COMMIT",
    help="The commit (hex id) that the next one follows, the same for all shards, or `none` for a "
    "first commit. The default is the newest commit.",
)
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="DIR",
    help="The folder for the result.",
)
@console_options(quiet=True)
def command(
    root: Path, /, name: str, path: str, base: str | None, folder: Path, console: Console
) -> int:
    """Scan the directory PATH of the module NAME for a later commit.

    PATH is relative to the root of the tree. huai-server commit NAME --from-shards DIR commits the
    results of all shards. huai-server shards NAME lists them.
    """
    with Progress(console):
        done = modules.scan_shard(root, name, os.fsencode(path), base, folder)
    console.event(
        "shard",
        module=name,
        path=show(done.path),
        base=done.base,
        entries=done.entries,
        hashed_files=done.hashed[0],
        hashed_bytes=done.hashed[1],
        seconds=round(done.seconds, 3),
    )
    entries = counted(done.entries, "entry", "entries")
    console.result(f"{name}: {show(done.path)}: {entries} ({done.seconds:.1f} s)")
    return 0
