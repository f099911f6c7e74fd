"""`huai-server announce`: write the place of the metadata into a tree."""

from pathlib import Path

import click

from huai_schema.codec.announcement import FILE_NAME, Announcement
from huai_schema.errors import FormatError
from huai_server.actions.announce import announce
from huai_server.cli.console import Console
from huai_server.cli.options import console_options, module_argument
from huai_server.config.load import load


@click.command()
@module_argument
@click.argument("url")
@console_options()
def command(root: Path, name: str, url: str, console: Console) -> None:
    """Write a file into the tree of NAME that names URL as the address of its metadata.

    huai-rsync looks for this file, huai-upstream, at the top of what it is to copy, and then needs
    no configuration. It is an entry of the tree like any other: commit afterwards. If the tree is
    itself a mirror, protect the file from deletion there, or run this before each commit: it writes
    only what is missing, and nothing into an empty tree.
    """
    tree = Path(load(root).module(name).path)
    try:
        announcement = Announcement.of(url, name)
    except FormatError as error:
        raise click.BadParameter(error.message) from None
    written = announce(tree, announcement)
    console.event("announced", module=name, path=str(tree / FILE_NAME), written=written)
    state = "written; commit it" if written else "is up to date"
    console.result(f"{name}: {tree / FILE_NAME}: {state}")
