"""The command line of `huai-server fallback`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from huai_schema.errors import ExitCode, HuaiError
from huai_schema.program.ending import print_json, tell
from huai_server.config import ATTR_KINDS, ServerConfig, load
from huai_server.places import FallbackPlaces, fallback_places, module_places

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

    Changes what differs, or makes a new one where that is impossible; clients that are connected
    finish on the old one. After the first time `huai-server commit` does this by itself.
    """
    from huai_server.fallback.attr import ensure

    config = load(root)
    module = config.module(name)
    places = _places(config, name)
    result = ensure(name, module, module_places(root, name), places, rebuild=rebuild)
    show_result(name, result, as_json=as_json)


@fallback.command()
@click.argument("name")
@_json_option
@click.pass_obj
def check(root: Path, name: str, as_json: bool) -> int:
    """Prove that the attr tree of NAME equals the commit that it is of.

    Exit code 53 says that it does not; `fallback build --rebuild` mends it.
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
    are left out: see `fallback build`.
    """
    from huai_server.fallback.service import configuration

    text, library = configuration(root, test=not no_test)
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


def show_result(name: str, result: "Result", *, as_json: bool) -> None:
    """Tell what was done to an attr tree."""
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
    else:
        done = {"none": "is current", "updated": "updated", "built": "built"}[result.action]
        each = result.memory // result.entries
        click.echo(
            f"{name}: attr tree {done}: serial {result.serial}, {result.changes:,} of "
            f"{result.entries:,} entries changed, about {result.memory >> 20:,} MiB "
            f"({each} bytes an entry), {result.seconds:.2f} s"
        )


def follow(root: Path, name: str, *, as_json: bool) -> ExitCode:
    """Bring the attr tree of NAME along, if it has one; what fails here undoes no commit."""
    config = load(root)
    module, places = config.module(name), _places(config, name)
    if module.fallback.kind not in ATTR_KINDS or not places.state.exists():
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
    show_result(name, result, as_json=as_json)
    return ExitCode.OK


def drop(config: ServerConfig, root: Path, name: str) -> None:
    """Take the attr tree of NAME away, if it has one."""
    places = _places(config, name)
    if places.state.exists():
        from huai_server.fallback.attr import remove

        remove(module_places(root, name), places)
