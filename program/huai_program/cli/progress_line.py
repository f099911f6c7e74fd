"""A line on the terminal that says what a long command has done so far."""

import sys
from collections.abc import Callable
from threading import Event, Thread
from typing import Self

_BEGIN_SECONDS = 2.0
"""The age from which on a run is long: a short one would only flicker."""


class ProgressLine:
    """The line, as a context manager; nothing is shown unless standard error is a terminal.

    What is printed meanwhile appears above it.
    """

    def __init__(self, text: Callable[[], str], *, visible: bool = True) -> None:
        """`text` returns the present line; it is called each time that the line is drawn."""
        self._text = text
        self._is_visible = visible and sys.stderr.isatty()
        self._end = Event()
        self._thread = Thread(target=self._show, name="progress", daemon=True)

    def __enter__(self) -> Self:
        """Show the line once the run is long."""
        if self._is_visible:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the line."""
        self._end.set()
        if self._thread.ident is not None:
            self._thread.join()

    def __rich__(self) -> str:
        """Return the present line, for rich."""
        return self._text()

    def _show(self) -> None:
        if self._end.wait(_BEGIN_SECONDS):
            return
        # They take as long to load as a short command.
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        with Live(
            Spinner("dots", self),
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=sys.stdout.isatty(),  # else a file would not get it
        ):
            self._end.wait()
