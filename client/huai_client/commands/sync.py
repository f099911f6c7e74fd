"""`huai-client sync`: bring trees to the newest commit."""

from pathlib import Path

import click
import msgspec

from huai_client.arguments import json_option, sync_options, transfer_options
from huai_client.config import load
from huai_client.options import SyncOptions
from huai_client.run import Run, Talk
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.program.ending import tell


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@sync_options
@click.option("-n", "--dry-run", is_flag=True, help="Show the plan and change nothing.")
@transfer_options
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@json_option
@click.pass_obj
def command(
    root: Path,
    names: tuple[str, ...],
    max_delete: str | None,
    adopt: bool,
    delete_strangers: bool,
    accept_rollback: bool,
    wait: float,
    dry_run: bool,
    streams: int | None,
    batch_files: int | None,
    batch_size: int | None,
    bwlimit: int | None,
    rsync_options: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> int:
    """Bring the modules NAME to the upstream's newest commit.

    Asks one question if there is nothing new. A run that was cut is finished by the next one.
    """
    overrides = {
        "streams": streams,
        "batch_files": batch_files,
        "batch_size": batch_size,
        "bwlimit": bwlimit,
        "rsync_options": rsync_options or None,
    }
    changes = {key: value for key, value in overrides.items() if value is not None}
    options = SyncOptions(max_delete, adopt, delete_strangers, accept_rollback)
    config = load(root)
    modules = {name: msgspec.structs.replace(config.module(name), **changes) for name in names}
    code = ExitCode.OK
    for name, module in modules.items():
        run = Run(root, name, module, Talk(quiet=quiet, as_json=as_json))
        try:
            ended = run.plan(options, wait=wait) if dry_run else run.sync(options, wait=wait)
        except HuaiError as error:
            if len(modules) == 1:
                raise
            tell("huai-client", error, as_json=as_json)
            ended = error.exit_code
        code = code or ended
    return code
