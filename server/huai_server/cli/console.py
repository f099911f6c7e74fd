"""The output of a command: text for people, lines of JSON for programs.

The one place of the server that prints.  Results go to standard output, everything else to
standard error.
"""

import sys
from typing import NamedTuple

from huai_program.ending import print_json, report_error
from huai_schema.errors import HuaiError

_PROGRAM = "huai-server"


class Console(NamedTuple):
    """A printer of text, of JSON, or of errors only."""

    as_json: bool
    quiet: bool = False

    def result(self, text: str, end: str = "\n") -> None:
        """Print a result at once: a program may wait for the line."""
        if not self.as_json and not self.quiet:
            sys.stdout.write(text + end)
            sys.stdout.flush()

    def event(self, kind: str, **values: object) -> None:
        """Print a result as a line of JSON, for programs."""
        if self.as_json:
            print_json(kind, **values)

    def warning(self, text: str) -> None:
        """Print a warning: not an error, but something to look at."""
        if not self.quiet:
            self.error(text)

    def error(self, text: str) -> None:
        """Print a message about something that went wrong."""
        sys.stderr.write(f"{_PROGRAM}: {text}\n")

    def failure(self, error: HuaiError) -> None:
        """Print an error after which the program continues."""
        report_error(_PROGRAM, error, as_json=self.as_json)

    def log(self, line: str) -> None:
        """Print a line of another program's log unchanged."""
        sys.stderr.write(line + "\n")
