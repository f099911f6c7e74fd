"""`huai-server add`: write a module into the configuration."""

from pathlib import Path
from typing import Literal

import click

from huai_server.actions import modules
from huai_server.cli.console import Console
from huai_server.cli.options import console_options
from huai_server.config.load import config_path
from huai_server.config.tables import Module


@click.command()
@click.argument("name")
@click.argument("path", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--content-url",
    "content_urls",
    multiple=True,
    metavar="URL",
    help="Where downstreams fetch content: rsync://mirror.example/NAME, or the same tree at a web "
    "server, https://mirror.example/NAME. May be given several times, best first.",
)
@click.option(
    "--mirror",
    "mirrors",
    multiple=True,
    metavar="URL",
    help="Where another mirror of the same tree serves its content, for downstreams that ask "
    'for it (mirrors = "auto"). May be given several times, best first.',
)
@click.option(
    "--digest",
    type=click.Choice(["now", "later", "off"]),
    default="now",
    show_default=True,
    help="When to read new and changed files for their digests: with each commit, later by "
    "`huai-server digest`, or never.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Leave out what matches, as for rsync's option of this name: *.tmp (a name, anywhere), "
    "/incoming (from the top) or lost+found/ (directories only). May be given several times.",
)
@click.option("--cross-file-systems", is_flag=True, help="Go into mounted file systems too.")
@click.option("--no-owners", is_flag=True, help="Do not record owners and groups.")
@click.option(
    "--serve-content",
    is_flag=True,
    help="Let `huai-server serve` send every file over HTTP, below /content/NAME/, and not only "
    "the large ones.",
)
@click.option(
    "--private",
    is_flag=True,
    help="Show it only to clients with a token; `huai-server token new NAME` makes one.",
)
@click.option(
    "--relay",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="ROOT",
    help="Serve the commits that a huai-client of this machine applied to PATH, instead of "
    "committing: ROOT is its state root (/var/lib/huai-client).",
)
@click.option(
    "--relay-name",
    default="",
    metavar="NAME",
    help="The module's name in that huai-client, if it is another one.",
)
@console_options()
def command(
    root: Path,
    name: str,
    path: Path,
    content_urls: tuple[str, ...],
    mirrors: tuple[str, ...],
    digest: Literal["now", "later", "off"],
    exclude: tuple[str, ...],
    cross_file_systems: bool,
    no_owners: bool,
    serve_content: bool,
    private: bool,
    relay: Path | None,
    relay_name: str,
    console: Console,
) -> None:
    """Add the tree at PATH as module NAME."""
    module = Module(
        path=str(path.absolute()),
        content_urls=content_urls,
        mirrors=mirrors,
        digest=digest,
        exclude=exclude,
        one_file_system=not cross_file_systems,
        owners=not no_owners,
        serve_content=serve_content or "large",
        access="private" if private else "public",
        relay=str(relay.absolute()) if relay else "",
        relay_name=relay_name,
    )
    unserved = modules.add(root, name, module)
    if unserved is not None:
        console.warning(f"the fallback: {unserved.message} ({unserved.hint})")
    console.event("added", module=name, path=module.path)
    console.result(f"{name}: added to {config_path(root)}")
    if not content_urls:
        console.result("no --content-url: downstreams must name their own in content_urls")
    console.result(f"next: huai-server {'relay' if relay else 'commit'} {name}")
