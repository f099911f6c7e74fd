"""`huai-client add`: write a module into the configuration."""

from pathlib import Path

import click

from huai_client.arguments import json_option
from huai_client.config import Module, add_module, config_path, make_root
from huai_schema.program.ending import print_json


@click.command()
@click.argument("name")
@click.argument("url")
@click.argument("dest", type=click.Path(path_type=Path))
@click.option(
    "--other-url",
    "other_urls",
    multiple=True,
    metavar="URL",
    help="Ask here if URL does not answer: another server of the same metadata. May be given "
    "several times, best first.",
)
@click.option(
    "--content-url",
    "content_urls",
    multiple=True,
    metavar="URL",
    help="Fetch content from here instead of where the upstream says: rsync://HOST/MODULE, "
    "HOST:PATH (ssh) or a local path. May be given several times, best first.",
)
@click.option(
    "--upstream-name",
    default="",
    metavar="NAME",
    help="What the upstream calls the module, if not NAME.",
)
@json_option
@click.pass_obj
def command(
    root: Path,
    name: str,
    url: str,
    dest: Path,
    other_urls: tuple[str, ...],
    content_urls: tuple[str, ...],
    upstream_name: str,
    as_json: bool,
) -> None:
    """Add module NAME of the upstream at URL, to be mirrored to DEST.

    URL is a huai server's base address, or any git URL of a metadata repository. DEST may hold a
    tree that rsync made: it is adopted, and only what really differs is fetched.
    """
    from huai_client.transfer import ContentUrl

    for content_url in content_urls:
        ContentUrl.parse(content_url)
    make_root(root)
    module = Module(
        url=(url, *other_urls) if other_urls else url,
        dest=str(dest.absolute()),
        content_urls=content_urls,
        upstream_name=upstream_name,
    )
    add_module(root, name, module)
    if as_json:
        print_json("added", module=name, dest=module.dest)
    else:
        click.echo(f"{name}: added to {config_path(root)}")
        click.echo(f"next: huai-client sync {name}")
