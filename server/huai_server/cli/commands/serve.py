"""`huai-server serve`: serve metadata over HTTP."""

from functools import partial
from pathlib import Path

import click

from huai_program.garbage import collect_usually
from huai_server.actions import modules
from huai_server.cli.console import Console
from huai_server.cli.notified import notify_of_signature
from huai_server.cli.options import console_options
from huai_server.state.errors import RequirementError


@click.command()
@click.option("--host", metavar="ADDRESS", help="Listen on ADDRESS, not on that of server.toml.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Listen on PORT, not on that of server.toml; 0 picks a free one.",
)
@console_options()
def command(root: Path, host: str | None, port: int | None, console: Console) -> None:
    """Serve the metadata of all modules over HTTP until stopped.

    Git clients find them at /git/NAME.git, programs at /api/v1. SIGTERM lets transfers finish.
    """
    collect_usually()
    try:
        from huai_server.actions.serve import serve
    except ModuleNotFoundError as error:
        raise RequirementError(
            f"{error.name} is not installed, but serving needs it",
            hint="pip install --require-hashes -r requirements/server.lock, or: "
            "pip install 'huai[server]'",
        ) from error

    def started(scheme: str, where: str, bound: int) -> None:
        """Print the address."""
        host_part = f"[{where}]" if ":" in where else where
        console.event("listening", scheme=scheme, host=where, port=bound)
        console.result(f"listening on {scheme}://{host_part}:{bound}/")

    serve(
        root,
        host=host,
        port=port,
        on_start=started,
        hand_over=lambda name: modules.relay(root, name).after.failures,
        notify_of_signature=partial(notify_of_signature, console),
    )
