"""`huai-client modules`: what an upstream has."""

import click

from huai_client.inspect.config_check import check_url
from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.served import list_modules
from huai_program.cli.options import json_option
from huai_program.ending import print_json
from huai_program.humanize import counted, human, moment

_TIMEOUT = 30.0


@click.command()
@click.argument("url")
@json_option
def command(url: str, as_json: bool) -> None:
    """List the modules of the huai server at URL: serial, size, and when it was committed."""
    check_url(url)
    for each in list_modules(MetadataUrl(url), timeout=_TIMEOUT):
        if as_json:
            print_json("served", **each._asdict())
            continue
        if each.serial is None:
            click.echo(f"{each.name}: no commit yet")
            continue
        size = f"{counted(each.entries or 0, 'entry', 'entries')}, {human(each.bytes or 0)}"
        when = f", committed {moment(each.committed)}" if each.committed else ""
        click.echo(f"{each.name}: serial {each.serial}, {size}{when}")
