"""`huai-client completion`: what a shell needs to complete command lines."""

import click

from huai_client.cli.completion import SHELLS, Shell, script
from huai_client.cli.options import json_option
from huai_schema.program.ending import print_json


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
@click.pass_context
def command(context: click.Context, shell: Shell, as_json: bool) -> None:
    """Print the script that lets SHELL complete commands, options and module names.

    \b
    bash: huai-client completion bash > /etc/bash_completion.d/huai-client
    zsh:  huai-client completion zsh > /usr/local/share/zsh/site-functions/_huai-client
    fish: huai-client completion fish > /etc/fish/completions/huai-client.fish
    """  # noqa: D301 - click's mark for lines that stay as they are
    text = script(shell, context.find_root().command)
    if as_json:
        print_json("script", shell=shell, text=text)
    else:
        click.echo(text, nl=False)
