"""The output of a command: text for people, lines of JSON for programs.

Results go to standard output, messages to standard error.
"""

import sys
from typing import TYPE_CHECKING

from msgspec import Struct

from huai_client.cli.logfile import LogFile
from huai_program.ending import print_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from huai_client.plan.prepared import PreparedPlan
    from huai_client.sync.result import SyncResult
    from huai_schema.paths import RelPath


class Console(Struct, frozen=True, kw_only=True):
    """A printer of text, JSON, or only errors."""

    quiet: bool
    as_json: bool
    module: str = ""
    """The module of every event, if any."""
    log_file: LogFile | None = None
    """The file for all messages, also those that are not shown."""

    def result(self, text: str) -> None:
        """Print a result for the user, unless `as_json`."""
        if not self.as_json:
            sys.stdout.write(text + "\n")

    def totals(self, received: int, total: int) -> None:
        """Log and print the bytes `received` by a good run, and the `total` of the tree.

        Logs nothing if none were received, prints nothing with `quiet`.  Mirror managers read them.
        """
        if received:
            self.log(f"received {received} bytes, total file size {total} bytes")
        if not self.quiet:
            self.result(f"Total bytes received: {received}")
            self.result(f"Total file size: {total} bytes")
            self.result(f"Total size is {total}")

    def planned(self, prepared: "PreparedPlan") -> None:
        """Accept a plan; prints nothing here."""

    def steps(self) -> "Callable[[str, RelPath], None] | None":
        """Return the callback after each change to the tree; None here."""
        return None

    def ended(self, result: "SyncResult") -> None:
        """Accept the result, before `totals`; prints nothing here."""

    def info(self, text: str) -> None:
        """Log a message, and print it to standard error unless `quiet` or `as_json`."""
        self.log(text)
        if not self.quiet and not self.as_json:
            sys.stderr.write(text + "\n")

    def error(self, text: str) -> None:
        """Log an error, and print it to standard error, even with `quiet`."""
        self.log(text)
        sys.stderr.write(text + "\n")

    def log(self, text: str) -> None:
        """Write a message to the log alone."""
        if self.log_file:
            self.log_file.write(self.module, text)

    def warning(self, text: str) -> None:
        """Print a warning to the administrator, even with `quiet`; also an event."""
        self.error(f"{self.module}: {text}")
        self.event("warning", message=text)

    def advice(self, text: str) -> None:
        """Log a warning about what an administrator, of either side, decided.

        Also prints it to standard error unless `quiet`, and a `warning` event with `as_json`.
        """
        line = f"{self.module}: {text}"
        if self.quiet:
            self.log(line)
        else:
            self.error(line)
        self.event("warning", message=text)

    def event(self, kind: str, **values: object) -> None:
        """Print an event for programs, with `as_json`."""
        if self.as_json:
            about: dict[str, object] = {"module": self.module} if self.module else {}
            print_json(kind, **{**about, **values})
