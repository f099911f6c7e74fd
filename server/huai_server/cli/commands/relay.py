"""`huai-server relay`: serve the commits that huai-client applied."""

from pathlib import Path

import click

from huai_program.cli.options import wait_option
from huai_server.actions import modules
from huai_server.cli.after_commit_report import show_after_commit
from huai_server.cli.console import Console
from huai_server.cli.options import each_module, modules_options


@click.command()
@modules_options
@click.option(
    "--accept-rollback",
    is_flag=True,
    help="Serve an older commit than before, or one of another module of that name. Downstreams "
    "refuse it until their administrators give this option too.",
)
@wait_option("another run")
@each_module(quiet=True, relayed=True)
def command(root: Path, name: str, accept_rollback: bool, wait: float, console: Console) -> int:
    """Serve the commits that huai-client applied to the modules NAME, or to all that are relayed.

    For modules with `relay` in server.toml. Commits stay as they are: serials, identity and
    signatures are the upstream's. `serve` does this by itself within a second of each sync; the
    command is for those who serve metadata as plain files only, and to see what is wrong.

    Exit code 47 means that the tree is a partial mirror, or was never synced: then nothing is
    relayed. 46: the applied commit is older than the one that is served.
    """
    done = modules.relay(root, name, accept_rollback=accept_rollback, wait=wait)
    head = done.result.head
    serial, new = head.info.serial, done.result.new
    console.event("relay", module=name, changed=new, commit=head.commit, serial=serial)
    state = "is relayed" if new else "was relayed before"
    console.result(f"{name}: serial {serial} {state}")
    show_after_commit(console, name, done.after, head)
    return done.after.exit_code
