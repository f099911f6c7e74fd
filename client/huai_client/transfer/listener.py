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
        """Begin a transfer of `files` files of `size` bytes in all."""

    def progressed(self, size: int, files: int) -> None:
        """Report the sums so far: `size` bytes of all files, and `files` whole ones."""

    def finished(self, files: Sequence[File]) -> None:
        """Report files that are verified and ready."""

    def refused(self, file: File, verdict: Arrival) -> None:
        """Report a file that is missing upstream, or does not match its metadata."""

    def retried(self, reason: str) -> None:
        """Report an attempt that failed and will be repeated, here or at another URL."""

    def waiting(self, reason: str) -> None:
        """Report a stream that waits, because the upstream is full."""

    def ended(self) -> None:
        """End the transfer, with or without success."""


class SilentProgress:
    """A listener that shows nothing."""

    def started(self, files: int, size: int) -> None:
        """Show nothing."""

    def progressed(self, size: int, files: int) -> None:
        """Show nothing."""

    def finished(self, files: Sequence[File]) -> None:
        """Show nothing."""

    def refused(self, file: File, verdict: Arrival) -> None:
        """Show nothing."""

    def retried(self, reason: str) -> None:
        """Show nothing."""

    def waiting(self, reason: str) -> None:
        """Show nothing."""

    def ended(self) -> None:
        """Show nothing."""
