"""The interface through which a transfer reports its progress.

Calls come one at a time, from any thread, and must return soon.
"""

from collections.abc import Sequence
from typing import Protocol

from huai_client.staging import Arrival
from huai_schema.entries import File


class Listener(Protocol):
    """Receives the events of one `fetch`, from `started` to `ended`."""

    def started(self, files: int, size: int) -> None:
        """`files` files of `size` bytes in all are to be transferred."""

    def progressed(self, size: int, files: int) -> None:
        """`size` bytes of all files, and `files` whole ones, have arrived so far: sums."""

    def finished(self, files: Sequence[File]) -> None:
        """`files` are verified and ready."""

    def refused(self, file: File, verdict: Arrival) -> None:
        """`file` is missing upstream, or does not match its metadata."""

    def retried(self, reason: str) -> None:
        """An attempt failed and will be repeated, here or at another URL."""

    def waiting(self, reason: str) -> None:
        """A stream waits, because the upstream is full."""

    def ended(self) -> None:
        """The transfer is over, with or without success."""


class SilentProgress:
    """Says nothing."""

    def started(self, files: int, size: int) -> None:
        """Nothing to show."""

    def progressed(self, size: int, files: int) -> None:
        """Nothing to show."""

    def finished(self, files: Sequence[File]) -> None:
        """Nothing to show."""

    def refused(self, file: File, verdict: Arrival) -> None:
        """Nothing to show."""

    def retried(self, reason: str) -> None:
        """Nothing to show."""

    def waiting(self, reason: str) -> None:
        """Nothing to show."""

    def ended(self) -> None:
        """Nothing to show."""
