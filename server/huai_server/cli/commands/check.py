"""`huai-server check`: verify metadata repositories."""

from pathlib import Path

import click

from huai_program.humanize import counted
from huai_schema.errors import ExitCode
from huai_server.cli.console import Console
from huai_server.cli.options import each_module, modules_options
from huai_server.config.load import load
from huai_server.state.closed_folder import is_open
from huai_server.state.paths import module_places
from huai_server.store.check import CheckReport, check_repository
from huai_server.store.repository import DAMAGE_HINT, Repository


@click.command()
@modules_options
@each_module(quiet=True)
def command(root: Path, name: str, console: Console) -> int:
    """Verify the metadata repositories of the modules NAME, or of all.

    Reads all of them back. Exit code 50 means that something is damaged.
    """
    places, module = module_places(root, name), load(root).modules.get(name)
    private = module is not None and module.is_private and places.folder.exists()
    if private and is_open(places.folder):
        console.warning(
            f"{name} is private, and every user of this machine may read {places.folder}: "
            f"commit it, or run: chmod o= {places.folder}"
        )
    if places.repository.exists():
        report = check_repository(name, Repository(places.repository))
    else:
        report = CheckReport(0, 0, 0, ())
    console.event(
        "check",
        module=name,
        commits=report.commits,
        objects=report.objects,
        entries=report.entries,
        faults=list(report.faults),
    )
    for fault in report.faults:
        console.result(f"{name}: {fault}")
    verdict = "sound" if report.commits else "no commit yet"
    if report.faults:
        verdict = counted(len(report.faults), "fault")
    console.result(
        f"{name}: {counted(report.commits, 'commit')}, {counted(report.objects, 'object')}, "
        f"{counted(report.entries, 'entry', 'entries')}: {verdict}"
    )
    if report.is_damaged:
        console.error(f"{name}: {DAMAGE_HINT}")
    return ExitCode.UNSOUND if report.faults else ExitCode.OK
