"""The command line of `huai-server fallback`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from huai_schema.codec.descriptor import check_module
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.program.ending import print_json, tell
from huai_server.config import ATTR_KINDS, ServerConfig, UnknownModuleError, load
from huai_server.paths import FallbackPlaces, fallback_places, module_places

if TYPE_CHECKING:
    from huai_server.fallback.attr import Result

_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print results as lines of JSON."
)


@click.group()
def fallback() -> None:
    """Serve clients that know only rsync, with no disk reads for a listing."""


@fallback.command()
@click.argument("name")
@click.option("--rebuild", is_flag=True, help="Make a new attr tree even if the old one is whole.")
@_json_option
@click.pass_obj
def build(root: Path, name: str, rebuild: bool, as_json: bool) -> None:
    """Bring the attr tree of module NAME to its newest commit.

    Changes what differs, or makes a new one where that is impossible, or where somebody else has
    changed the old one; clients that are connected finish on the old one. After the first time
    `huai-server commit` does this by itself. An attr tree that belongs to another state root, or
    lists another path than the module's, is left as it is (53); --rebuild takes up a new path.
    """
    from huai_server.fallback.attr import ensure
    from huai_server.fallback.conf import check_names

    config = load(root)
    module = config.module(name)
    check_names(served_names(config))
    places = _places(config, name)
    result = ensure(name, module, module_places(root, name), places, rebuild=rebuild, look=True)
    show_result(name, result, as_json=as_json)


@fallback.command("remove")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="All attr trees of this state root.")
@_json_option
@click.pass_obj
def take_away(root: Path, names: tuple[str, ...], everything: bool, as_json: bool) -> int:
    """Delete the attr tree of NAME, and give back its memory.

    The module need not be configured any more. New clients are refused at once. What a client
    still reads stays until it is done (exit code 53): then `fallback serve`, the next commit, or
    this command once more deletes it. `fallback serve` makes a new attr tree for a module that is
    still configured: set its fallback.kind to "off" first.
    """
    from huai_server.fallback.attr.remove import exists, forgotten, remove

    if bool(names) == everything:
        raise click.UsageError("give the NAME of a module, or --all")
    config = load(root)
    code = ExitCode.OK
    for name in names or tuple(forgotten(root, Path(config.fallback.folder), ())):
        _check_name(name)
        places = _places(config, name)
        there = exists(places)
        gone = remove(name, module_places(root, name), places)
        code = code if gone else ExitCode.FALLBACK
        if as_json:
            print_json("attr_removed", module=name, existed=there, gone=gone)
        elif not there:
            click.echo(f"{name}: no attr tree")
        else:
            rest = "" if gone else "; clients still read it: run this again to delete the rest"
            click.echo(f"{name}: attr tree removed{rest}")
    return code


@fallback.command()
@click.argument("name")
@_json_option
@click.pass_obj
def check(root: Path, name: str, as_json: bool) -> int:
    """Prove that the attr tree of NAME equals the commit that it is of.

    Exit code 53 says that it does not; `fallback build --rebuild` repairs it.
    """
    from huai_server.fallback.attr.check import check as run

    config = load(root)
    report = run(name, config.module(name), module_places(root, name), _places(config, name))
    if as_json:
        print_json(
            "attr_check",
            module=name,
            commit=report.commit,
            entries=report.entries,
            differences=report.differences,
            shown=list(report.shown),
        )
    else:
        for fault in report.shown:
            click.echo(f"{name}: {fault}")
        verdict = f"{report.differences:,} differences" if report.differences else "equal"
        click.echo(f"{name}: {report.entries:,} entries of {report.commit[:12]}: {verdict}")
    return ExitCode.FALLBACK if report.differences else ExitCode.OK


@fallback.command()
@click.option("--no-test", is_flag=True, help="Do not try this machine's rsync first.")
@_json_option
@click.pass_obj
def conf(root: Path, no_test: bool, as_json: bool) -> None:
    """Print an rsyncd.conf for those who run rsyncd themselves.

    Its first lines name the environment that rsync needs. Modules whose attr tree is not built
    are left out, which is said: see `fallback build`. Without fallback.log_file rsync logs to
    syslog.
    """
    from huai_server.fallback.service import configuration

    text, library, left_out = configuration(root, test=not no_test)
    for name, reason in left_out:
        click.echo(f"huai-server: {name}: left out: {reason}", err=True)
    if as_json:
        print_json("rsyncd_conf", text=text, environment={"LD_PRELOAD": str(library)})
        return
    click.echo("# Start rsync --daemon with this in its environment (systemd: Environment=…);")
    click.echo("# without it rsync answers every client with an error:")
    click.echo(f"# LD_PRELOAD={library}")
    click.echo(text, nl=False)


@fallback.command()
@_json_option
@click.pass_obj
def serve(root: Path, as_json: bool) -> None:
    """Serve all modules to plain rsync clients until stopped.

    Runs the stock rsync daemon; its log goes to standard error unless fallback.log_file says
    otherwise. Takes up changes of server.toml and new commits by itself. SIGTERM lets transfers
    finish.
    """
    from huai_server.fallback.service import Told
    from huai_server.fallback.service import serve as run

    def listening(host: str, port: int) -> None:
        if as_json:
            print_json("listening", host=host, port=port)
        else:
            click.echo(f"listening on rsync://{host}:{port}/")

    def tree(name: str, result: "Result") -> None:
        show_result(name, result, as_json=as_json)

    def trouble(text: str) -> None:
        click.echo(f"huai-server: {text}", err=True)

    def line(text: str) -> None:
        click.echo(text, err=True)

    run(root, Told(listening, tree, trouble, line))


def _places(config: ServerConfig, name: str) -> FallbackPlaces:
    return fallback_places(Path(config.fallback.folder), name)


def show_result(name: str, result: "Result", *, as_json: bool, quiet: bool = False) -> None:
    """Tell what was done to an attr tree; `quiet`: only what programs or an administrator need."""
    for warning in result.warnings:
        click.echo(f"huai-server: {name}: {warning}", err=True)
    if as_json:
        print_json(
            "attr_tree",
            module=name,
            action=result.action,
            attr_kind=result.kind,
            commit=result.commit,
            serial=result.serial,
            entries=result.entries,
            changes=result.changes,
            memory=result.memory,
            seconds=round(result.seconds, 3),
        )
    elif not quiet:
        done = {"none": "is current", "updated": "updated", "built": "built"}[result.action]
        each = result.memory // result.entries
        click.echo(
            f"{name}: attr tree {done}: serial {result.serial}, {result.changes:,} of "
            f"{result.entries:,} entries changed, about {result.memory >> 20:,} MiB "
            f"({each} bytes an entry), {result.seconds:.2f} s"
        )


def follow(root: Path, name: str, *, as_json: bool, quiet: bool = False) -> ExitCode:
    """Bring the attr tree of NAME along, if it has one; what fails here undoes no commit."""
    config = load(root)
    try:
        if Path(config.fallback.folder).is_dir():
            _forget(root, config)
    except HuaiError as error:  # of other modules: this one's attr tree has to follow
        tell("huai-server", error, as_json=as_json)
    module, places = config.module(name), _places(config, name)
    if not places.state.exists():
        return ExitCode.OK
    if (whose := _not_own(root, name, places)) is not None:
        click.echo(f"huai-server: {name}: {whose}; this commit leaves it as it is", err=True)
        return ExitCode.OK
    if not os.access(places.folder, os.W_OK):
        text = f"{name}: the attr tree belongs to another user; `fallback serve` brings it along"
        click.echo(f"huai-server: {text}", err=True)
        return ExitCode.OK
    from huai_server.fallback.attr import ensure

    try:
        result = ensure(name, module, module_places(root, name), places)
    except HuaiError as error:
        tell("huai-server", error, as_json=as_json)
        return ExitCode.FALLBACK
    show_result(name, result, as_json=as_json, quiet=quiet)
    return ExitCode.OK


def drop(config: ServerConfig, root: Path, name: str) -> None:
    """Take the attr tree of NAME away, if it has one; another state root's stays."""
    places = _places(config, name)
    if _not_own(root, name, places) is None:
        from huai_server.fallback.attr import remove

        if not remove(name, module_places(root, name), places):
            text = f"{name}: clients still read its attr tree: when they are done, run"
            click.echo(f"huai-server: {text} huai-server fallback remove {name}", err=True)


def _forget(root: Path, config: ServerConfig) -> None:
    """Delete the attr trees of modules that are configured no more, or list otherwise now."""
    from huai_server.fallback.attr.remove import remove_forgotten

    kept = {name for name, each in config.modules.items() if each.fallback.kind in ATTR_KINDS}
    for name in remove_forgotten(root, Path(config.fallback.folder), kept):
        text = f"{name}: attr tree removed: no module lists from it any more"
        click.echo(f"huai-server: {text}", err=True)


def _check_name(name: str) -> None:
    try:
        check_module(name)
    except FormatError as error:
        raise UnknownModuleError(error.reason, hint="give the name of a module") from None


def served_names(config: ServerConfig) -> list[str]:
    """The modules that rsyncd.conf is to hold."""
    return [name for name, module in config.modules.items() if module.fallback.kind != "off"]


def _not_own(root: Path, name: str, places: FallbackPlaces) -> str | None:
    """Whose the attr tree is, in words, if it is not this root's."""
    from huai_server.fallback.attr import belonging

    if belonging.is_own(module_places(root, name), places):
        return None
    owner = belonging.owner(places)
    if owner is not None:
        return f"{places.folder}: the attr tree belongs to the state root {owner}"
    return f"{places.folder}: an older huai made the attr tree: run huai-server fallback build"
