"""`huai-server fallback conf`: print an rsyncd.conf for a daemon started by other means."""

from pathlib import Path

import click

from huai_server.cli.console import Console
from huai_server.cli.options import console_options
from huai_server.fallback.service import configuration


@click.command()
@click.option("--no-test", is_flag=True, help="Do not try this machine's rsync first.")
@console_options()
@click.pass_obj
def command(root: Path, no_test: bool, console: Console) -> None:
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
