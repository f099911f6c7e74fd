"""`huai-client remove`: forget a module."""

from pathlib import Path
from shutil import rmtree

import click

from huai_client.cli.options import module_argument
from huai_client.config.load import load, remove_module
from huai_client.state.paths import module_places
from huai_client.state.state import module_lock
from huai_program.cli.options import json_option
from huai_program.ending import print_json


@click.command()
@module_argument
@json_option
@click.pass_obj
def command(root: Path, name: str, as_json: bool) -> None:
    """Forget module NAME; its tree is not touched.

    Its configuration, its state and the metadata that was fetched are deleted.
    """
    module = load(root).module(name)
    places = module_places(root, name)
    with module_lock(places, wait=0, verifying=True), module_lock(places, wait=0):
        if places.patches.exists():
            from huai_client.staging import Journals, finish_patches

            # No later run would finish, or compare, a half-changed file.
            for file in finish_patches(Journals(places.patches, Path(module.dest))):
                click.echo(f"{name}: {file} was left half changed", err=True)
        remove_module(root, name)
        rmtree(places.folder)
    if as_json:
        print_json("removed", module=name)
    else:
        click.echo(f"{name}: removed; its tree was not touched")
