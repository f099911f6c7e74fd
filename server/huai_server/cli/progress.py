"""Shows on a terminal what a long command has read so far."""

import sys
from threading import Event, Thread
from typing import Self

from huai_native._native import progress_so_far
from huai_program.humanize import counted, human
from huai_server.cli.console import Console

_BEGIN_SECONDS = 2.0
"""The age from which on a run is long: a short one would only flicker."""


class Progress:
    """A line with what this process has scanned and read, as a context manager.

    Nothing is shown without a terminal, with --quiet or with --json.
    """

    def __init__(self, console: Console) -> None:
        """The line is removed at the end."""
        self._shards = ""
        self._end = Event()
        self._thread = Thread(target=self._show, name="progress", daemon=True)
        self._is_wanted = sys.stderr.isatty() and not (console.quiet or console.as_json)

    def __enter__(self) -> Self:
        """Show the line once the run is long."""
        if self._is_wanted:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.end()

    def shards(self, done: int, total: int) -> None:
        """Show how many shards are scanned; what engines' processes read is not counted."""
        self._shards = f"{done:,} of {counted(total, 'shard')}, "

    def end(self) -> None:
        """Remove the line, before something else is printed."""
        self._end.set()
        if self._thread.ident is not None:
            self._thread.join()

    def __rich__(self) -> str:
        """Return the present line; rich calls this each time it draws."""
        files, size = progress_so_far()
        return f"{self._shards}{counted(files, 'file')} scanned, {human(size)} read"

    def _show(self) -> None:
        if self._end.wait(_BEGIN_SECONDS):
            return
        # They take as long to load as a short command.
        from rich.console import Console as Terminal
        from rich.live import Live
        from rich.spinner import Spinner

        with Live(
            Spinner("dots", self),
            console=Terminal(stderr=True),
            transient=True,
            redirect_stdout=False,  # it may be a file
        ):
            self._end.wait()
