"""`huai-server fallback serve`: serve listings and content to plain rsync clients."""

from pathlib import Path

import click

from huai_program.garbage import collect_usually
from huai_server.cli.after_commit_report import show_attr_tree
from huai_server.cli.console import Console
from huai_server.cli.options import console_options
from huai_server.fallback.attr.ensure import AttrTreeResult
from huai_server.fallback.service import Callbacks, serve_fallback


@click.command()
@console_options()
@click.pass_obj
def command(root: Path, console: Console) -> None:
    """Serve all modules to plain rsync clients until stopped.

    Runs the stock rsync daemon, which logs to standard error unless fallback.log_file is set.
    Changes of server.toml and new commits take effect by themselves. SIGTERM lets transfers finish.
    """

    def listening(host: str, port: int) -> None:
        console.event("listening", host=host, port=port)
        console.result(f"listening on rsync://{host}:{port}/")

    def attr_tree(name: str, result: AttrTreeResult) -> None:
        show_attr_tree(console, name, result)

    collect_usually()
    serve_fallback(root, Callbacks(listening, attr_tree, console.error, console.log))
