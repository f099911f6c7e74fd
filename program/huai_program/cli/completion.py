"""The command `completion`: prints the script by which a shell completes command lines.

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
_HELP = """Print the script that lets SHELL complete commands, options and module names.

\b
bash: {0} completion bash > /etc/bash_completion.d/{0}
zsh:  {0} completion zsh > /usr/local/share/zsh/site-functions/_{0}
fish: {0} completion fish > /etc/fish/completions/{0}.fish
"""


def completion_command(program: str) -> click.Command:
    """Return the command `completion` of `program`, which prints the script for one of `SHELLS`."""
    variable = f"_{program.replace('-', '_').upper()}_COMPLETE"

    @click.command(help=_HELP.format(program))
    @click.argument("shell", type=click.Choice(SHELLS))
    @json_option
    @click.pass_context
    def command(context: click.Context, shell: Shell, as_json: bool) -> None:
        maker = get_completion_class(shell)
        assert maker is not None  # noqa: S101 - click knows these three
        text = maker(context.find_root().command, {}, program, variable).source()
        if as_json:
            print_json("script", shell=shell, text=text)
        else:
            click.echo(text, nl=False)

    return command
