"""What a command prints: text for people, lines of JSON for programs.

Results go to standard output, messages to standard error.
"""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from huai_client.cli.logfile import LogFile
from huai_program.ending import print_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from huai_client.plan.prepared import Prepared
    from huai_client.sync.result import SyncResult
    from huai_schema.paths import RelPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """Prints text, JSON, or only errors."""

    quiet: bool
    as_json: bool
    module: str = ""
    """What every event is about; `Run` fills it in."""
    log_file: LogFile | None = None
    """Gets all messages, also those that are not shown."""

    def result(self, text: str) -> None:
        """Something that the user asked for."""
        if not self.as_json:
            sys.stdout.write(text + "\n")

    def totals(self, received: int, total: int) -> None:
        """Print the end of a good run; mirror managers read the sizes from its last two lines."""
        if received:
            self.log(f"received {received} bytes, total file size {total} bytes")
        if not self.quiet:
            self.result(f"Total bytes received: {received}")
            self.result(f"Total file size: {total} bytes")
            self.result(f"Total size is {total}")

    def planned(self, prepared: "Prepared") -> None:
        """Called with each plan; prints nothing here."""

    def steps(self) -> "Callable[[str, RelPath], None] | None":
        """What is called after each step; None: nothing."""
        return None

    def ended(self, result: "SyncResult") -> None:
        """Called with the result, before `totals`."""

    def info(self, text: str) -> None:
        """Something that is no result; to standard error, and the log."""
        self.log(text)
        if not self.quiet and not self.as_json:
            sys.stderr.write(text + "\n")

    def error(self, text: str) -> None:
        """Something that went wrong; also with `quiet`."""
        self.log(text)
        sys.stderr.write(text + "\n")

    def log(self, text: str) -> None:
        """Something for the log only."""
        if self.log_file:
            self.log_file.write(self.module, text)

    def warning(self, text: str) -> None:
        """Something that the administrator should know."""
        self.error(f"{self.module}: {text}")
        self.event("warning", message=text)

    def advice(self, text: str) -> None:
        """A warning about what the upstream or the administrator did on purpose."""
        line = f"{self.module}: {text}"
        if self.quiet:
            self.log(line)
        else:
            self.error(line)
        self.event("warning", message=text)

    def event(self, kind: str, **values: object) -> None:
        """The same as an object, for programs."""
        if self.as_json:
            about: dict[str, object] = {"module": self.module} if self.module else {}
            print_json(kind, **{**about, **values})
