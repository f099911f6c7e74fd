"""The scripts by which a shell completes our command lines.

The shells' side is click's: a script that each shell loads calls the program with a variable
set, and the program answers with words instead of running.  What it offers for module names
stands with the arguments.
"""

from typing import Literal, get_args

import click
from click.shell_completion import get_completion_class

Shell = Literal["bash", "zsh", "fish"]
SHELLS: tuple[Shell, ...] = get_args(Shell)
_VARIABLE = "_HUAI_CLIENT_COMPLETE"
"""As click names it for a program of our name."""


def script(shell: Shell, program: click.Command) -> str:
    """What the shell has to load."""
    maker = get_completion_class(shell)
    assert maker is not None  # noqa: S101 - click knows these three
    return maker(program, {}, "huai-client", _VARIABLE).source()
