"""A transfer's troubles for the log file, whatever else is shown of it.

Wraps a listener.  Files that were refused are told of at the end of a run, and not here.
"""

from collections.abc import Callable

from huai_client.transfer.listener import Listener


class LoggedProgress:
    """Passes everything on, and notes down why a transfer takes long."""

    def __init__(self, shown: Listener, note: Callable[[str], None]) -> None:
        """`note` takes a line."""
        self._shown = shown
        self._note = note
        self.started = shown.started
        self.progressed = shown.progressed
        self.finished = shown.finished
        self.refused = shown.refused
        self.ended = shown.ended

    def retried(self, reason: str) -> None:
        """Note it."""
        self._note(f"trying again: {reason}")
        self._shown.retried(reason)

    def waiting(self, reason: str) -> None:
        """Note it."""
        self._note(f"waiting: {reason}")
        self._shown.waiting(reason)
