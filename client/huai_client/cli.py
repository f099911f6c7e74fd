"""The command line of `huai-client`: arguments in, results and exit codes out.

Results go to standard output (with `--json` a line of JSON each), talk to standard error.
Heavy modules are imported by the command that needs them: a sync that finds nothing new
must not pay for one that does.
"""

import sys
import time
from pathlib import Path

import click

from huai_client import state as states
from huai_client.arguments import json_option, sync_options, transfer_options, wait_option
from huai_client.config import (
    Module,
    add_module,
    config_path,
    default_root,
    load,
    make_root,
    remove_module,
)
from huai_client.options import SyncOptions
from huai_client.places import module_places
from huai_client.publishing import waiting
from huai_client.run import Run, Talk, module_lock
from huai_client.upstream import MetadataUrl
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.program.ending import conclude, print_json, tell
from huai_schema.program.locking import holder


def main() -> None:
    """The program."""
    code = conclude(
        "huai-client",
        lambda: command_line.main(prog_name="huai-client", standalone_mode=False),
        usage_error=click.ClickException,
        abort=click.Abort,
        as_json="--json" in sys.argv,
    )
    sys.exit(code)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="huai")
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="HUAI_CLIENT_ROOT",
    default=None,
    show_envvar=True,
    help="The folder that holds client.toml and all state; default /var/lib/huai-client, for other "
    "users than root ~/.local/state/huai-client.",
)
@click.pass_context
def command_line(context: click.Context, root: Path | None) -> None:
    """Keep mirrors in step with a huai upstream, at the cost of what changed.

    Run `huai-client sync NAME` from cron, a timer or tunasync.
    """
    context.obj = (root or default_root()).absolute()


@command_line.command()
@click.argument("name")
@click.argument("url")
@click.argument("dest", type=click.Path(path_type=Path))
@click.option(
    "--content-url",
    "content_urls",
    multiple=True,
    metavar="URL",
    help="Fetch content from here instead of where the upstream says: rsync://HOST/MODULE, "
    "HOST:PATH (ssh) or a local path. May be given several times, best first.",
)
@click.option(
    "--upstream-name",
    default="",
    metavar="NAME",
    help="What the upstream calls the module, if not NAME.",
)
@json_option
@click.pass_obj
def add(
    root: Path,
    name: str,
    url: str,
    dest: Path,
    content_urls: tuple[str, ...],
    upstream_name: str,
    as_json: bool,
) -> None:
    """Add module NAME of the upstream at URL, to be mirrored to DEST.

    URL is a huai server's base address, or any git URL of a metadata repository. DEST may hold a
    tree that rsync made: it is adopted, and only what really differs is fetched.
    """
    from huai_client.transfer import ContentUrl

    for content_url in content_urls:
        ContentUrl.parse(content_url)
    make_root(root)
    module = Module(
        url=url,
        dest=str(dest.absolute()),
        content_urls=content_urls,
        upstream_name=upstream_name,
    )
    add_module(root, name, module)
    if as_json:
        print_json("added", module=name, dest=module.dest)
    else:
        click.echo(f"{name}: added to {config_path(root)}")
        click.echo(f"next: huai-client sync {name}")


@command_line.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@sync_options
@click.option("-n", "--dry-run", is_flag=True, help="Show the plan and change nothing.")
@transfer_options
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@json_option
@click.pass_obj
def sync(
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
    import msgspec

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


@command_line.command()
@click.argument("name")
@sync_options
@json_option
@click.pass_obj
def plan(
    root: Path,
    name: str,
    max_delete: str | None,
    adopt: bool,
    delete_strangers: bool,
    accept_rollback: bool,
    wait: float,
    as_json: bool,
) -> int:
    """Show what `sync NAME` would do, and do none of it."""
    options = SyncOptions(max_delete, adopt, delete_strangers, accept_rollback)
    run = Run(root, name, load(root).module(name), Talk(quiet=False, as_json=as_json))
    return run.plan(options, wait=wait)


@command_line.command()
@click.argument("name")
@click.option("--content", is_flag=True, help="Read every file too, and compare its digest.")
@click.option("--repair", is_flag=True, help="Mend what differs.")
@click.option(
    "--delete-strangers",
    is_flag=True,
    help="With --repair: delete what the applied commit does not name.",
)
@wait_option
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@json_option
@click.pass_obj
def verify(
    root: Path,
    name: str,
    content: bool,
    repair: bool,
    delete_strangers: bool,
    wait: float,
    quiet: bool,
    as_json: bool,
) -> int:
    """Compare the tree of NAME with the commit applied last.

    Lists what differs, and ends with exit code 47 if anything does and was not mended.
    """
    run = Run(root, name, load(root).module(name), Talk(quiet=quiet, as_json=as_json))
    options = SyncOptions(delete_strangers=delete_strangers)
    return run.verify(options, content=content, repair=repair, wait=wait)


@command_line.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@json_option
@click.pass_obj
def status(root: Path, names: tuple[str, ...], as_json: bool) -> None:
    """Show where the trees of the modules NAME stand, or of all."""
    config = load(root)
    for name in names or sorted(config.modules):
        module, places = config.module(name), module_places(root, name)
        state, running = states.load(places.state), holder(places.lock)
        waits = waiting.head(places.waiting)
        if as_json:
            print_json(
                "module",
                module=name,
                dest=module.dest,
                url=str(MetadataUrl(module.url)),
                applied=state.applied,
                serial=state.serial or None,
                attempted=list(state.attempted),
                time=state.time or None,
                running=running,
                waiting=waits.paths,
            )
        else:
            line = _status_line(name, module, state, running)
            click.echo(line + (f", {waits.paths:,} deletions wait" if waits.paths else ""))


@command_line.command()
@click.argument("name")
@json_option
@click.pass_obj
def remove(root: Path, name: str, as_json: bool) -> None:
    """Forget module NAME; its tree stays as it is.

    Its configuration, its state and the metadata that was fetched are deleted.
    """
    from shutil import rmtree

    load(root).module(name)
    places = module_places(root, name)
    with module_lock(places, wait=0):
        remove_module(root, name)
        rmtree(places.folder)
    if as_json:
        print_json("removed", module=name)
    else:
        click.echo(f"{name}: removed; its tree stays as it is")


def _status_line(name: str, module: Module, state: states.State, running: int | None) -> str:
    if state.applied is None:
        what = "never synced to its end"
    else:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state.time))
        what = f"serial {state.serial}, synced {when}"
    if state.attempted:
        what += ", a run was cut: the next one finishes it"
    if running:
        what += f", running (process {running})"
    return f"{name}: {module.dest}: {what}"
