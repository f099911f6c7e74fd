"""Detection of newest commits whose signature expires without renewal, while `serve` runs.

A commit is renewed when half of its signature's validity is over.  One in the last quarter shows
that commits no longer run, or fail, and a program that does not run cannot report that itself.

Nothing is stored on disk, where `serve` may write next to nothing, so a restart notifies again.
"""

import time
from collections.abc import Callable
from pathlib import Path

from huai_program.humanize import long_span
from huai_schema.errors import HuaiError
from huai_server.config.load import ServerConfig, load
from huai_server.state.paths import module_places
from huai_server.state.periodic_thread import PeriodicThread
from huai_server.store.repository import Head, Repository

LOOK_SECONDS = 600.0
_LAST = 4
"""The last 1/4 of the validity, in which the signature counts as expiring."""

SendNotification = Callable[[ServerConfig, str, int, str], bool]
"""Sends that the signature of a module expires, with the time of detection (epoch) and the reason,
or, with an empty reason, that it was renewed; returns True if a notification was sent."""


def is_expiring(head: Head, now: float) -> bool:
    """Return True if the signature of `head` has expired, or is in its last quarter at `now`.

    False for an unsigned commit.  `now` is in seconds since the epoch.
    """
    left = head.valid_until - int(now)
    return bool(head.valid_until) and left <= (head.valid_until - head.time) / _LAST


def expiry_reason(head: Head, now: float) -> str:
    """Return a sentence if the signature of `head` is expiring at `now`; else an empty text."""
    if not is_expiring(head, now):
        return ""
    left = head.valid_until - int(now)
    serial = f"the signature of the newest commit, serial {head.info.serial},"
    how = f"expires in {long_span(left)}" if left > 0 else f"expired {long_span(-left)} ago"
    return f"{serial} {how}: no commit has renewed it"


class ExpiryWatch(PeriodicThread):
    """A thread that checks the modules of one state root; stopping cuts off notifications."""

    def __init__(self, root: Path, send: SendNotification) -> None:
        """`send` is not called if the configuration has no `[notify]`."""
        super().__init__("expiry", LOOK_SECONDS)
        self._root = root
        self._send = send
        self._reported: dict[str, int] = {}
        """The modules that were reported as expiring, each with the time of detection."""

    def look(self) -> None:
        """Send a notification for each signature that began to expire, or was renewed since.

        Does nothing without `[notify]`; modules that cannot be read are skipped.
        """
        try:
            config = load(self._root)
        except HuaiError:  # `serve` reports it
            return
        if config.notify is None:
            return
        for name in config.modules:
            try:
                head = Repository(module_places(self._root, name).repository).head()
            except HuaiError:  # nothing is committed yet, or its readers report the error
                continue
            if head is not None and not self.is_stopping:
                self._report(config, name, expiry_reason(head, time.time()))

    def _report(self, config: ServerConfig, name: str, reason: str) -> None:
        """Send a notification when there is a `reason`, and one when it is gone.

        If sending fails, the next call tries again.
        """
        since = self._reported.get(name)
        if reason and since is None:
            now = int(time.time())
            if self._send(config, name, now, reason):
                self._reported[name] = now
        elif since is not None and not reason and self._send(config, name, since, ""):
            del self._reported[name]
