"""`huai-server announce`: arguments in, results out."""

from pathlib import Path

import click

from huai_schema.codec.announcement import FILE_NAME, Announcement
from huai_schema.errors import FormatError
from huai_schema.program.ending import print_json
from huai_server.announce import announce as write
from huai_server.config import load


@click.command()
@click.argument("name")
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="Print results as lines of JSON.")
@click.pass_obj
def announce(root: Path, name: str, url: str, as_json: bool) -> None:
    """Write a file into the tree of NAME that says that its metadata are at URL.

    huai-rsync looks for it at the top of what it is to copy, through the rsync daemon itself,
    and needs no configuration then. The file, huai-upstream, is an entry of the tree like any
    other: commit afterwards. If the tree is a mirror of another one, keep it from being deleted
    there, or run this before each commit: it writes only what is not there.
    """
    tree = Path(load(root).module(name).path)
    try:
        announcement = Announcement.of(url, name)
    except FormatError as error:
        raise click.BadParameter(error.message) from None
    written = write(tree, announcement)
    if as_json:
        print_json("announced", module=name, path=str(tree / FILE_NAME), written=written)
    else:
        told = "written; commit it" if written else "stands there already"
        click.echo(f"{name}: {tree / FILE_NAME}: {told}")
