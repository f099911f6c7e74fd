"""How the user of a command is told: text for people, lines of JSON for programs.

The one place of the server that prints.  Results go to standard output, everything else to
standard error.
"""

import sys
from dataclasses import dataclass

from huai_schema.errors import HuaiError
from huai_schema.program.ending import print_json, tell

_PROGRAM = "huai-server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """How the user is told: text, JSON, or only errors."""

    as_json: bool
    quiet: bool = False

    def result(self, text: str, end: str = "\n") -> None:
        """Something that the user asked for, at once: a program may wait for the line."""
        if not self.as_json and not self.quiet:
            sys.stdout.write(text + end)
            sys.stdout.flush()

    def event(self, kind: str, **values: object) -> None:
        """The same as an object, for programs."""
        if self.as_json:
            print_json(kind, **values)

    def warning(self, text: str) -> None:
        """Something that is no error, and that somebody should know."""
        if not self.quiet:
            self.error(text)

    def error(self, text: str) -> None:
        """Something that went wrong."""
        sys.stderr.write(f"{_PROGRAM}: {text}\n")

    def failure(self, error: HuaiError) -> None:
        """A failure after which the program goes on."""
        tell(_PROGRAM, error, as_json=self.as_json)

    def log(self, line: str) -> None:
        """A line of another program's log, as it is."""
        sys.stderr.write(line + "\n")
