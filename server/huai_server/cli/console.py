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
    """A printer of text or of JSON; with `quiet` of JSON and errors only."""

    as_json: bool
    quiet: bool = False

    def result(self, text: str, end: str = "\n") -> None:
        """Print a result as text, and flush it; nothing with --json or --quiet."""
        if not self.as_json and not self.quiet:
            sys.stdout.write(text + end)
            sys.stdout.flush()

    def event(self, kind: str, **values: object) -> None:
        """With --json, print a result as a line of JSON, and flush it."""
        if self.as_json:
            print_json(kind, **values)

    def warning(self, text: str) -> None:
        """Print a warning on standard error; nothing with --quiet."""
        if not self.quiet:
            self.error(text)

    def error(self, text: str) -> None:
        """Print a message on standard error, also with --quiet."""
        sys.stderr.write(f"{_PROGRAM}: {text}\n")

    def failure(self, error: HuaiError) -> None:
        """Print an error on standard error, and with --json as a line of JSON too."""
        report_error(_PROGRAM, error, as_json=self.as_json)

    def log(self, line: str) -> None:
        """Print a line of another program's log unchanged, on standard error."""
        sys.stderr.write(line + "\n")
