"""The help texts are an interface that changes only on purpose."""

from collections.abc import Iterator

import pytest

from docs.man.pages import PROGRAMS, command_line, commands, top_context
from tests.conftest import Golden

WIDTH = 100
"""Independent of the terminal in which the tests run."""


def help_texts(program: str) -> Iterator[str]:
    """Return the output of `--help` of the program and of each command."""
    top = top_context(program, command_line(program), terminal_width=WIDTH)
    for name, context in [(program, top), *commands(top)]:
        yield f"$ {name} --help\n{context.get_help()}\n"


@pytest.mark.parametrize("program", PROGRAMS)
def test_help(program: str, golden: Golden) -> None:
    text = "\n".join(help_texts(program))
    golden.check(f"help/{program}.txt", text)
