"""`huai-client completion`: print the script by which a shell completes our command lines.

Click writes the scripts: they call the program with a variable set, and the program prints words
instead of running.  The suggestions for module names are defined with the arguments.
"""

from typing import Literal, get_args

import click
from click.shell_completion import get_completion_class

from huai_program.cli.options import json_option
from huai_program.ending import print_json

Shell = Literal["bash", "zsh", "fish"]
SHELLS: tuple[Shell, ...] = get_args(Shell)
_VARIABLE = "_HUAI_CLIENT_COMPLETE"
"""The variable that click uses for a program of our name."""


def script(shell: Shell, program: click.Command) -> str:
    """Return the script that the shell has to load."""
    maker = get_completion_class(shell)
    assert maker is not None  # noqa: S101 - click knows these three
    return maker(program, {}, "huai-client", _VARIABLE).source()


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
