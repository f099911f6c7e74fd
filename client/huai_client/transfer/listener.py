"""Who is told how a transfer goes.

Calls come one at a time, from whichever thread has news, and must return soon.
"""

from typing import Protocol

from huai_client.transfer.staging import Arrival
from huai_schema.entries import File


class Listener(Protocol):
    """Told about one `fetch`, from `started` to `ended`."""

    def started(self, files: int, size: int) -> None:
        """`files` files of `size` bytes in all are to be transferred."""

    def progressed(self, size: int) -> None:
        """`size` bytes of all files are here by now (an absolute figure, not an increment)."""

    def finished(self, file: File) -> None:
        """`file` is verified and ready."""

    def refused(self, file: File, verdict: Arrival) -> None:
        """`file` is missing upstream, or what came does not match."""

    def retried(self, reason: str) -> None:
        """An attempt failed and will be repeated, here or at another URL."""

    def waiting(self, reason: str) -> None:
        """The upstream is full; we stand in line."""

    def ended(self) -> None:
        """Nothing more comes, whether it went well or not."""


class SilentProgress:
    """Says nothing."""

    def started(self, files: int, size: int) -> None:
        """Nothing to show."""

    def progressed(self, size: int) -> None:
        """Nothing to show."""

    def finished(self, file: File) -> None:
        """Nothing to show."""

    def refused(self, file: File, verdict: Arrival) -> None:
        """Nothing to show."""

    def retried(self, reason: str) -> None:
        """Nothing to show."""

    def waiting(self, reason: str) -> None:
        """Nothing to show."""

    def ended(self) -> None:
        """Nothing to show."""
