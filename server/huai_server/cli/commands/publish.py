"""`huai-server publish`: write static files, for `serve` and any web server."""

from pathlib import Path

import click

from huai_program.cli.options import wait_option
from huai_schema.errors import ExitCode
from huai_server.actions.publish import publish_module
from huai_server.cli.after_commit_report import show_published
from huai_server.cli.console import Console
from huai_server.cli.notified import run_and_notify
from huai_server.cli.options import each_module, modules_options
from huai_server.config.load import load
from huai_server.config.place import is_bucket
from huai_server.state.paths import module_places


@click.command()
@modules_options
@click.option(
    "--to",
    metavar="PLACE",
    help="Write into this folder or bucket (s3://BUCKET/DIR), and not where server.toml says.",
)
@wait_option("another publish")
@each_module(quiet=True)
def command(root: Path, name: str, to: str | None, wait: float, console: Console) -> int:
    """Write the newest commits of the modules NAME, or of all, as plain files.

    Each commit does this: into the module's repository, from where huai-server serve reads them,
    and into the places of [static] in server.toml. Run it after a failure. Any web server or bucket
    that serves such a place is a metadata server: downstreams use its address as they would use
    huai-server's. Files that are there already are not written again, so the cost is that of what
    changed.

    No token protects the files outside of the repository: a private module is published only into
    places of its own table, or with --to, and with a warning.
    """
    config = load(root)
    copies = config.static_places(name)
    if to:
        copies = (to if is_bucket(to) else str(Path(to).absolute()),)
    if copies and config.module(name).is_private:
        console.warning(
            f"{name} is private, and no token protects these files: everyone whom the web server "
            "lets read them sees the module"
        )

    def run() -> int:
        """Publish to each target, and print what was done."""
        for to_copy in copies if to else ("", *copies):
            done = publish_module(root, name, to_copy, configured=not to, wait=wait)
            place = to_copy or str(module_places(root, name).repository)
            show_published(console, name, place, done)
            if not done.files:
                console.result(f"{name}: {place}: nothing new, serial {done.head.info.serial}")
        return ExitCode.OK

    return run_and_notify(console, root, name, "publish", run, str)
