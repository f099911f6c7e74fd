"""Programs on a terminal of their own."""

import os
import pty
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.prepared import Program, Started
from tests.support.processes import until
from tests.support.upstream import ENVIRONMENT

SECONDS = 60


class Terminal:
    """A program on a terminal of its own; `stderr` is as for `Popen`, by default the terminal."""

    def __init__(self, program: Program, *words: str, stderr: int | None = None) -> None:
        self.keys, self.screen = pty.openpty()
        termios.tcsetwinsize(self.keys, (8, 400))
        self.before = termios.tcgetattr(self.screen)
        error = self.screen if stderr is None else stderr
        streams: Any = {"stdin": self.screen, "stdout": self.screen, "stderr": error}
        self.process = Started(program, words, ENVIRONMENT, **streams)
        os.set_blocking(self.keys, False)
        self.output = b""

    def until(self, text: str) -> str:
        """All that was shown so far, once it holds `text`."""
        until(lambda: text in self.read())
        return self.read()

    def read(self) -> str:
        """All that was shown so far."""
        try:
            while piece := os.read(self.keys, 65536):
                self.output += piece
        except OSError:  # there is no more for now
            pass
        return self.output.decode()

    def ended(self) -> int:
        """Its exit code, when all is as it was."""
        code = self.process.wait(SECONDS)
        assert termios.tcgetattr(self.screen) == self.before
        return int(code)


@contextmanager
def terminal(program: Program, *words: str, stderr: int | None = None) -> Iterator[Terminal]:
    """Start a program on a terminal, and kill it at the end."""
    terminal = Terminal(program, *words, stderr=stderr)
    try:
        yield terminal
    finally:
        terminal.process.kill()
        terminal.process.communicate()
        os.close(terminal.keys)
        os.close(terminal.screen)
