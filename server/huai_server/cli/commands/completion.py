"""`huai-server completion`: print the script that lets a shell complete command lines."""

from pathlib import Path
from typing import Literal, get_args

import click
from click.shell_completion import get_completion_class

from huai_server.cli.console import Console
from huai_server.cli.options import console_options

Shell = Literal["bash", "zsh", "fish"]
_VARIABLE = "_HUAI_SERVER_COMPLETE"
"""The variable that click uses for a program of this name."""


@click.command()
@click.argument("shell", type=click.Choice(get_args(Shell)))
@console_options()
def command(_root: Path, shell: Shell, console: Console) -> None:
    """Print the script that lets SHELL complete commands, options and module names.

    \b
    bash: huai-server completion bash > /etc/bash_completion.d/huai-server
    zsh:  huai-server completion zsh > /usr/local/share/zsh/site-functions/_huai-server
    fish: huai-server completion fish > /etc/fish/completions/huai-server.fish
    """  # noqa: D301 - click's mark for unchanged lines
    maker = get_completion_class(shell)
    assert maker is not None  # noqa: S101 - click knows these three
    program = click.get_current_context().find_root().command
    text = maker(program, {}, "huai-server", _VARIABLE).source()
    console.event("script", shell=shell, text=text)
    console.result(text, end="")
