"""`huai-server relay`: serve the commits that huai-client applied."""

from pathlib import Path

import click

from huai_program.cli.options import wait_option
from huai_schema.errors import ExitCode
from huai_server.actions import modules
from huai_server.cli.after_commit_report import show_after_commit
from huai_server.cli.console import Console
from huai_server.cli.options import chosen, console_options, every_option, modules_argument, run_all
from huai_server.config.load import load


@click.command()
@modules_argument
@every_option
@click.option(
    "--accept-rollback",
    is_flag=True,
    help="Hand on an older commit than is served, or one of another module of that name. "
    "Downstreams refuse it until their administrators say the same.",
)
@wait_option("another run")
@console_options(quiet=True)
@click.pass_obj
def command(
    root: Path,
    names: tuple[str, ...],
    every: bool,
    accept_rollback: bool,
    wait: float,
    console: Console,
) -> int:
    """Serve the commits that huai-client applied to the modules NAME, or to all that are relayed.

    For modules with `relay` in server.toml. Commits stay as they are: serials, identity and
    signatures are the upstream's. `serve` does this by itself within a second of each sync; the
    command is for those who serve metadata as plain files only, and to see what is wrong.

    Exit code 47 means that the tree is not the whole mirror, or was never synced: then nothing is
    relayed. 46: the applied commit is older than the one that is served.
    """

    def one(name: str) -> int:
        done = modules.relay(root, name, accept_rollback=accept_rollback, wait=wait)
        head = done.result.head
        serial, new = head.info.serial, done.result.new
        console.event("relay", module=name, changed=new, commit=head.commit, serial=serial)
        state = "is relayed" if new else "was relayed before"
        console.result(f"{name}: serial {serial} {state}")
        show_after_commit(console, name, done.after, head)
        return done.after.exit_code

    relayed_names = chosen(load(root), names, every=every, relayed=True)
    return run_all(one, relayed_names, console) if relayed_names else ExitCode.OK
