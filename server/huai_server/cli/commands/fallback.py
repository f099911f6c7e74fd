"""`huai-server fallback`: serve clients that know only rsync."""

from functools import partial
from pathlib import Path

import click

from huai_program.cli.group import Group
from huai_program.configuration import UnknownModuleError
from huai_program.garbage import collect_usually
from huai_schema.codec.module_name import check_module
from huai_schema.errors import ExitCode, FormatError
from huai_server.cli.after_commit_report import show_attr_tree
from huai_server.cli.console import Console
from huai_server.cli.options import (
    console_options,
    each_module,
    modules_argument,
    modules_options,
)
from huai_server.config.load import load
from huai_server.fallback.attr.check import check_attr_tree
from huai_server.fallback.attr.ensure import ensure
from huai_server.fallback.attr.remove import delete_attr_tree, exists, forgotten
from huai_server.fallback.attr.tree import attr_tree
from huai_server.fallback.conf import clashing_names
from huai_server.fallback.service import Callbacks, configuration, serve_fallback


@click.group(cls=Group)
def command() -> None:
    """Serve clients that know only rsync, with no disk reads for a listing."""


@command.command()
@modules_options
@click.option("--rebuild", is_flag=True, help="Make a new attr tree even if the old one is whole.")
@each_module(attr_trees=True)
def build(root: Path, name: str, rebuild: bool, console: Console) -> int:
    """Bring the attr trees of the modules NAME, or of all, to their newest commits.

    Changes what differs, or makes a new attr tree where that is impossible or another program has
    changed the old one; connected clients finish on the old one. After the first time, `huai-server
    commit` does this by itself. --all leaves out modules that list from none. An attr tree that
    belongs to another state root, or lists another path than the module's, is left alone (53);
    --rebuild accepts the new path.
    """
    config = load(root)
    if clash := clashing_names(config.fallback_modules).get(name):
        raise clash
    show_attr_tree(console, name, ensure(attr_tree(root, config, name), rebuild=rebuild, look=True))
    return ExitCode.OK


@command.command()
@modules_options
@each_module(attr_trees=True)
def check(root: Path, name: str, console: Console) -> int:
    """Verify that the attr trees of the modules NAME, or of all, equal their commits.

    Exit code 53 means that one does not; `fallback build --rebuild` repairs it.
    """
    report = check_attr_tree(attr_tree(root, load(root), name))
    console.event(
        "attr_check",
        module=name,
        commit=report.commit,
        entries=report.entries,
        differences=report.differences,
        shown=list(report.shown),
    )
    for fault in report.shown:
        console.result(f"{name}: {fault}")
    verdict = f"{report.differences:,} differences" if report.differences else "equal"
    console.result(f"{name}: {report.entries:,} entries of {report.commit[:12]}: {verdict}")
    return ExitCode.FALLBACK if report.differences else ExitCode.OK


@command.command()
@click.option("--no-test", is_flag=True, help="Do not try this machine's rsync first.")
@console_options()
def conf(root: Path, no_test: bool, console: Console) -> None:
    """Print an rsyncd.conf, for running rsyncd yourself.

    Its first lines name the environment that rsync needs. Modules whose attr tree is not built are
    left out, with a message: see `fallback build`. Without fallback.log_file rsync logs to syslog.
    """
    text, library, left_out, unconfined = configuration(root, test=not no_test)
    if unconfined is not None:
        console.warning(f"connections are not confined: {unconfined}")
    for name, reason in left_out:
        console.warning(f"{name}: left out: {reason}")
    console.event("rsyncd_conf", text=text, environment={"LD_PRELOAD": str(library)})
    console.result(
        "# Start rsync --daemon with this in its environment (systemd: Environment=…);\n"
        "# without it rsync answers every client with an error:\n"
        f"# LD_PRELOAD={library}\n" + text,
        end="",
    )


@command.command()
@modules_argument
@click.option("--all", "every", is_flag=True, help="All attr trees of this state root.")
@console_options()
def remove(root: Path, names: tuple[str, ...], every: bool, console: Console) -> int:
    """Delete the attr tree of NAME, and free its memory.

    The module need not be configured any more. New clients are refused at once. What a client still
    reads stays until it is done (exit code 53), and is then deleted by `fallback serve`, the next
    commit, or another run of this command. `fallback serve` makes a new attr tree for a module that
    is still configured: set its fallback.kind to "off" first.
    """
    if bool(names) == every:
        raise click.UsageError("give the NAME of a module, or --all")
    config, code = load(root), ExitCode.OK
    for name in names or [tree.name for tree in forgotten(root, config, ())]:
        _check_name(name)
        tree = attr_tree(root, config, name)
        existed = exists(tree.fallback)
        is_gone = delete_attr_tree(tree)
        code = code if is_gone else ExitCode.FALLBACK
        console.event("attr_removed", module=name, existed=existed, gone=is_gone)
        if not existed:
            console.result(f"{name}: no attr tree")
        else:
            rest = "" if is_gone else "; clients still read it: run this again to delete the rest"
            console.result(f"{name}: attr tree removed{rest}")
    return code


def _check_name(name: str) -> None:
    """Raise `UnknownModuleError` for a name that no module can have."""
    try:
        check_module(name)
    except FormatError as error:
        raise UnknownModuleError(error.reason, hint="give the name of a module") from None


@command.command()
@console_options()
def serve(root: Path, console: Console) -> None:
    """Serve all modules to plain rsync clients until stopped.

    Runs the stock rsync daemon, which logs to standard error unless fallback.log_file is set.
    Changes of server.toml and new commits take effect by themselves. SIGTERM lets transfers finish.
    """

    def listening(host: str, port: int) -> None:
        console.event("listening", host=host, port=port)
        console.result(f"listening on rsync://{host}:{port}/")

    collect_usually()
    serve_fallback(
        root, Callbacks(listening, partial(show_attr_tree, console), console.error, console.log)
    )
