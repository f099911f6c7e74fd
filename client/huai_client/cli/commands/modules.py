"""`huai-client modules`: list the modules of an upstream."""

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
    for module in list_modules(MetadataUrl(url), timeout=_TIMEOUT):
        if as_json:
            print_json("served", **module._asdict())
            continue
        if module.serial is None:
            click.echo(f"{module.name}: no commit yet")
            continue
        size = f"{counted(module.entries or 0, 'entry', 'entries')}, {human(module.bytes or 0)}"
        when = f", committed {moment(module.committed)}" if module.committed else ""
        click.echo(f"{module.name}: serial {module.serial}, {size}{when}")
