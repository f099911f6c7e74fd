"""The command line of `huai-server`: arguments in, results and exit codes out.

Results go to standard output (with `--json` a line of JSON each), talk to standard error.
Heavy modules are imported by the command that needs them.
"""

import sys
import time
from pathlib import Path
from typing import Any

import click

from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import show
from huai_schema.program.configuration import ConfigError
from huai_schema.program.counting import counted
from huai_schema.program.ending import conclude, print_json
from huai_schema.program.output import Output
from huai_schema.program.signals import leave_quietly
from huai_server.cli.announce import announce
from huai_server.cli.completion import completion
from huai_server.cli.fallback import drop, fallback, follow, served_names
from huai_server.cli.options import (
    chosen,
    each,
    every_option,
    json_option,
    module_argument,
    modules_argument,
)
from huai_server.cli.report import (
    commit_line,
    problem_lines,
    remark_lines,
    remark_values,
    status_line,
    status_values,
    totals_values,
)
from huai_server.config import (
    Module,
    add_module,
    config_path,
    default_root,
    load,
    remove_module,
)
from huai_server.errors import storing
from huai_server.fallback.conf import check_names
from huai_server.paths import module_places


class LibraryError(HuaiError):
    """A library of the extra `server` is missing."""

    exit_code = ExitCode.REQUIREMENT


def main() -> None:
    """The program."""
    output = Output()
    code = conclude(
        "huai-server",
        lambda: command_line.main(prog_name="huai-server", standalone_mode=False),
        usage_error=click.ClickException,
        abort=click.Abort,
        as_json="--json" in sys.argv,
    )
    leave_quietly()
    sys.exit(output.code(code))


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="huai")
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False, readable=False),
    envvar="HUAI_ROOT",
    default=None,
    show_envvar=True,
    help="The folder that holds server.toml and all state; default /var/lib/huai, for other users "
    "than root ~/.local/state/huai if that does not exist.",
)
@click.pass_context
def command_line(context: click.Context, root: Path | None) -> None:
    """Commit the metadata of file mirrors to git, and serve it to downstreams.

    Run `huai-server commit NAME` after each update of a mirror, and `huai-server serve` all the
    time.
    """
    context.obj = (root or default_root()).absolute()


@command_line.command()
@click.argument("name")
@click.argument("path", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--content-url",
    "content_urls",
    multiple=True,
    metavar="URL",
    help="Where downstreams fetch content with rsync, for example rsync://mirror.example/NAME. "
    "May be given several times, best first.",
)
@click.option(
    "--digest",
    type=click.Choice(["now", "off"]),
    default="now",
    show_default=True,
    help="Read new and changed files and record digests of their content, or do not.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Leave out what matches this glob: *.tmp (a name, anywhere), /incoming (a path from the "
    "top) or lost+found/ (directories only). May be given several times.",
)
@click.option("--cross-file-systems", is_flag=True, help="Go into mounted file systems too.")
@click.option("--no-owners", is_flag=True, help="Do not record owners and groups.")
@json_option
@click.pass_obj
def add(
    root: Path,
    name: str,
    path: Path,
    content_urls: tuple[str, ...],
    digest: str,
    exclude: tuple[str, ...],
    cross_file_systems: bool,
    no_owners: bool,
    as_json: bool,
) -> None:
    """Add the tree at PATH as module NAME."""
    module = Module(
        path=str(path.absolute()),
        content_urls=content_urls,
        digest="off" if digest == "off" else "now",
        exclude=exclude,
        one_file_system=not cross_file_systems,
        owners=not no_owners,
    )
    with storing(root):
        root.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir(mode=0o700, exist_ok=True)
        add_module(root, name, module)
        module_places(root, name).folder.mkdir(parents=True, exist_ok=True)
        names = served_names(load(root))
    try:
        check_names(names)
    except ConfigError as error:  # as long as nobody runs the fallback, it is no matter
        click.echo(f"huai-server: the fallback: {error.message} ({error.hint})", err=True)
    if as_json:
        print_json("added", module=name, path=module.path)
    else:
        click.echo(f"{name}: added to {config_path(root)}")
        if not content_urls:
            click.echo("no --content-url: downstreams have to know where to fetch content")
        click.echo(f"next: huai-server commit {name}")


@command_line.command()
@modules_argument
@every_option
@click.option("--allow-empty", is_flag=True, help="Commit even a tree without any entry.")
@click.option(
    "--accept-mounts",
    is_flag=True,
    help="Commit directories as they are now where a file system was mounted over what they held, "
    "or is not mounted any more; otherwise their old entries stay.",
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="How long to wait for another commit of this module to end.",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@json_option
@click.pass_obj
def commit(
    root: Path,
    /,
    names: tuple[str, ...],
    every: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Scan the trees of the modules NAME, or of all, and commit what changed.

    Exit code 41 says that some paths could not be committed as they are: they are named, their old
    entries stay, everything else is committed. Of several modules a failed one does not keep back
    the others; the exit code is then that of the first that failed.
    """
    config = load(root)

    def one(name: str) -> int:
        module = config.module(name)
        code = _commit(root, name, module, quiet=quiet, as_json=as_json, **options)
        followed = follow(root, name, as_json=as_json, quiet=quiet)
        return code or followed

    return each(one, chosen(config, names, every=every), as_json=as_json)


def _commit(
    root: Path, name: str, module: Module, *, quiet: bool, as_json: bool, **options: Any
) -> int:
    """One module; `options` are those of the use case."""
    from huai_server.commit.commit import commit as run

    started = time.monotonic()
    result = run(name, module, module_places(root, name), **options)
    remarks = () if quiet else remark_lines(name, result.remarks)
    for line in (*remarks, *problem_lines(name, result.problems)):
        click.echo(f"huai-server: {line}", err=True)
    seconds = time.monotonic() - started
    if as_json:
        print_json(
            "commit",
            module=name,
            changed=result.changed,
            commit=result.head.commit,
            tree=result.head.tree,
            serial=result.head.info.serial,
            totals=totals_values(result.head.info),
            counts=result.counts._asdict(),
            hashed_files=result.hashed_files,
            hashed_bytes=result.hashed_bytes,
            problems=[[show(path), reason, outcome] for path, reason, outcome in result.problems],
            warnings=[remark_values(remark) for remark in result.remarks],
            seconds=round(seconds, 3),
        )
    elif not quiet:
        click.echo(commit_line(name, result.head.info, seconds, changed=result.changed))
    return result.exit_code


@command_line.command()
@click.option("--host", metavar="ADDRESS", help="Listen here instead of where server.toml says.")
@click.option(
    "--port", type=click.IntRange(0, 65535), metavar="PORT", help="The same; 0 picks a free one."
)
@json_option
@click.pass_obj
def serve(root: Path, host: str | None, port: int | None, as_json: bool) -> None:
    """Serve the metadata of all modules over HTTP until stopped.

    Git clients find it under /git/NAME.git, programs under /api/v1. SIGTERM lets transfers
    finish.
    """
    try:
        from huai_server.serve import serve as run
    except ModuleNotFoundError as error:
        raise LibraryError(
            f"{error.name} is not installed, which serving needs",
            hint="pip install --require-hashes -r requirements/server.lock, or: "
            "pip install 'huai[server]'",
        ) from error

    def started(where: str, bound: int) -> None:
        if as_json:
            print_json("listening", host=where, port=bound)
        else:
            host_part = f"[{where}]" if ":" in where else where
            click.echo(f"listening on http://{host_part}:{bound}/")

    run(root, host=host, port=port, on_start=started)


@command_line.command()
@modules_argument
@json_option
@click.pass_obj
def status(root: Path, names: tuple[str, ...], as_json: bool) -> int:
    """Show what is committed of the modules NAME, or of all.

    A module that cannot be read is shown as such, beside the others; the exit code tells.
    """
    from huai_server.store.status import module_state

    config = load(root)
    modules = {name: config.module(name) for name in names or sorted(config.modules)}
    code = ExitCode.OK
    for name, module in modules.items():
        state = module_state(module_places(root, name))
        code = state.problem.exit_code if state.problem else code
        if as_json:
            print_json("module", **status_values(name, module, state))
        else:
            click.echo(status_line(name, module, state))
    return code


@command_line.command()
@modules_argument
@every_option
@json_option
@click.pass_obj
def check(root: Path, names: tuple[str, ...], every: bool, as_json: bool) -> int:
    """Prove that the metadata repositories of the modules NAME, or of all, are sound.

    Reads all of them back. Exit code 50 says that something is damaged.
    """

    def one(name: str) -> int:
        return _check(root, name, as_json=as_json)

    return each(one, chosen(load(root), names, every=every), as_json=as_json)


def _check(root: Path, name: str, *, as_json: bool) -> int:
    from huai_server.store.check import check as run
    from huai_server.store.repository import Repository

    report = run(name, Repository(module_places(root, name).repository))
    if as_json:
        print_json(
            "check",
            module=name,
            commits=report.commits,
            objects=report.objects,
            entries=report.entries,
            faults=list(report.faults),
        )
    else:
        for fault in report.faults:
            click.echo(f"{name}: {fault}")
        verdict = counted(len(report.faults), "fault") if report.faults else "sound"
        click.echo(
            f"{name}: {counted(report.commits, 'commit')}, {counted(report.objects, 'object')}, "
            f"{counted(report.entries, 'entry', 'entries')}: {verdict}"
        )
    return ExitCode.UNSOUND if report.faults else ExitCode.OK


@command_line.command()
@module_argument
@click.option("--purge", is_flag=True, help="Delete its metadata repository and caches too.")
@json_option
@click.pass_obj
def remove(root: Path, name: str, purge: bool, as_json: bool) -> None:
    """Remove module NAME; its tree is never touched.

    The metadata stays unless --purge is given, so that a module added again goes on with its
    serial numbers.
    """
    from huai_server.store.purge import purge_module

    config = load(root)
    config.module(name)
    places = module_places(root, name)
    drop(config, root, name)
    if purge:  # first, so that one that is refused can be repeated
        purge_module(places)
    remove_module(root, name)
    if as_json:
        print_json("removed", module=name, purged=purge)
    else:
        kept = (
            ""
            if purge or not places.folder.exists()
            else f"; its metadata stays in {places.folder}"
        )
        click.echo(f"{name}: removed{kept}")


command_line.add_command(announce)
command_line.add_command(completion)
command_line.add_command(fallback)
