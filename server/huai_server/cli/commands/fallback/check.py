"""`huai-server fallback check`: compare an attr tree with its commit."""

from pathlib import Path

import click

from huai_schema.errors import ExitCode
from huai_server.cli.console import Console
from huai_server.cli.options import console_options, module_argument
from huai_server.config.load import load
from huai_server.fallback.attr.check import check_attr_tree
from huai_server.fallback.attr.tree import attr_tree


@click.command()
@module_argument
@console_options()
@click.pass_obj
def command(root: Path, name: str, console: Console) -> int:
    """Verify that the attr tree of NAME equals its commit.

    Exit code 53 means that it does not; `fallback build --rebuild` repairs it.
    """
    config = load(root)
    config.module(name)
    report = check_attr_tree(attr_tree(root, config, name))
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
