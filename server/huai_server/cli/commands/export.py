"""`huai-server export`: write what other programs of mirrors read."""

import time
from pathlib import Path

import click

from huai_schema.errors import ExitCode
from huai_schema.paths import exact, show
from huai_schema.program.humanize import counted
from huai_server.cli.console import Console
from huai_server.cli.options import (
    chosen,
    each,
    every_option,
    json_option,
    modules_argument,
    quiet_option,
)
from huai_server.config import load
from huai_server.export.dialects import NAMES
from huai_server.exports import export_module, plan_export
from huai_server.paths import module_places


@click.command()
@modules_argument
@every_option
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write there, and not where [modules.NAME.export] says.",
)
@click.option(
    "--only",
    type=click.Choice(sorted(NAMES)),
    multiple=True,
    help="Write these, and not what [modules.NAME.export] says; may be given several times.",
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="How long to wait for a commit or another export of this module to end.",
)
@quiet_option
@json_option
@click.pass_obj
def command(
    root: Path,
    names: tuple[str, ...],
    every: bool,
    folder: str | None,
    only: tuple[str, ...],
    wait: float,
    quiet: bool,
    as_json: bool,
) -> int:
    """Write lists of the newest commits of the modules NAME, or of all, for other programs.

    fedora: fullfiletimelist-NAME, fullfilelist and imagelist-NAME for quick-fedora-mirror and
    MirrorManager; ls-lR: ls-lR.gz; trace: Debian's project/trace; arch: lastupdate and lastsync;
    timestamp: for mirmon and mirrorbits; tunasync: tunasync.json; b3sums: B3SUMS. Reads no tree.
    A file whose content stands there already is not touched.
    """
    console = Console(as_json=as_json, quiet=quiet)
    config = load(root)

    def one(name: str) -> int:
        module = config.module(name)
        if not only and not module.export.files:
            raise click.UsageError(
                f"[modules.{name}.export] names no files: say which with --only, and where to with "
                "--to"
            )
        if folder is None and not module.export.files:
            raise click.UsageError("say where to with --to")
        started = time.monotonic()
        target = None if folder is None else str(Path(folder).absolute())
        plan = plan_export(name, module, folder=target, only=only)
        result = export_module(name, module, module_places(root, name), plan, wait=wait)
        console.event(
            "export",
            module=name,
            commit=result.commit,
            serial=result.serial,
            files=[
                {"path": exact(file.path), "size": file.size, "changed": file.changed}
                for file in result.files
            ],
            left_out=result.left_out,
            seconds=round(time.monotonic() - started, 3),
        )
        for file in result.files:
            if file.changed:
                console.result(f"{name}: {show(file.path)}: {counted(file.size, 'byte')}")
        if result.left_out:
            console.warning(
                f"{name}: {counted(result.left_out, 'name')} left out of Fedora's lists: control "
                "characters, or no UTF-8"
            )
        if not result.changed:
            console.result(f"{name}: nothing changed since serial {result.serial}")
        return ExitCode.OK

    return each(one, chosen(config, names, every=every), console)
