"""`huai-server export`: write lists for other mirror software."""

from pathlib import Path

import click

from huai_program.cli.options import wait_option
from huai_schema.errors import ExitCode
from huai_server.actions.export import export_module
from huai_server.cli.after_commit_report import show_export
from huai_server.cli.console import Console
from huai_server.cli.options import each_module, modules_options
from huai_server.config.load import load
from huai_server.export.dialects import NAMES
from huai_server.state.paths import module_places


@click.command()
@modules_options
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write to this folder instead of the one in [modules.NAME.export].",
)
@click.option(
    "--only",
    type=click.Choice(sorted(NAMES)),
    multiple=True,
    help="Write these instead of the files in [modules.NAME.export]; may be given several times.",
)
@wait_option("a commit or another export")
@each_module(quiet=True)
def command(
    root: Path,
    name: str,
    folder: str | None,
    only: tuple[str, ...],
    wait: float,
    console: Console,
) -> int:
    """Write lists of the newest commits of the modules NAME, or of all, for other programs.

    fedora: fullfiletimelist-NAME, fullfilelist and imagelist-NAME for quick-fedora-mirror and
    MirrorManager; ls-lR: ls-lR.gz; trace: Debian's project/trace; arch: lastupdate and lastsync;
    timestamp: for mirmon and mirrorbits; tunasync: tunasync.json; b3sums: B3SUMS. Reads no tree.
    Files that would not change are not touched.
    """
    module = load(root).module(name)
    if not only and not module.export.files:
        raise click.UsageError(
            f"[modules.{name}.export] names no files: choose some with --only, and the folder "
            "with --to"
        )
    if folder is None and not module.export.files:
        raise click.UsageError("give the folder with --to")
    target = None if folder is None else str(Path(folder).absolute())
    described, result = export_module(
        name,
        lambda: load(root).module(name),
        module_places(root, name),
        folder=target,
        only=only,
        wait=wait,
    )
    show_export(console, name, result, described)
    if not result.changed:
        console.result(f"{name}: nothing changed, still serial {described.info.serial}")
    return ExitCode.OK
