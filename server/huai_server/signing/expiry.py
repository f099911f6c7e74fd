"""Sees, as long as `serve` runs, that nobody renews the signature of a newest commit.

A commit is made anew when half of its signature's validity is over, so in the last quarter nobody
commits any more, or cannot.  Whoever commits would not tell of that: it may be what does not run.

Nothing is kept on the disk, where `serve` may write next to nothing: after a restart somebody is
told once more.
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
"""Between two looks."""
_LAST = 4
"""The part of the validity that is the last one."""

Tell = Callable[[ServerConfig, str, int, str], bool]
"""Tells that the signature of a module needs somebody, since when (epoch) and why, or, with an
empty reason, that it was renewed; returns whether anybody was told."""


def ending(head: Head, now: float) -> str:
    """Why the signature of a newest commit needs somebody; empty: it does not."""
    left = head.valid_until - int(now)
    if not head.valid_until or left > (head.valid_until - head.time) / _LAST:
        return ""
    serial = f"the signature of the newest commit, serial {head.info.serial},"
    how = f"holds for {long_span(left)} only" if left > 0 else f"ended {long_span(-left)} ago"
    return f"{serial} {how}: no commit has renewed it"


class ExpiryWatch(PeriodicThread):
    """The modules of one state root; who is being told at the end is left behind."""

    def __init__(self, root: Path, tell: Tell) -> None:
        """Nobody is told where the configuration has no `[notify]`."""
        super().__init__("expiry", LOOK_SECONDS)
        self._root = root
        self._tell = tell
        self._told: dict[str, int] = {}
        """Modules of which somebody was told, and since when they need it."""

    def look(self) -> None:
        """Tell of what is news."""
        try:
            config = load(self._root)
        except HuaiError:  # `serve` tells of it
            return
        if config.notify is None:
            return
        for name in config.modules:
            try:
                head = Repository(module_places(self._root, name).repository).head()
            except HuaiError:  # nothing is committed yet, or what reads it tells of it
                continue
            if head is not None and not self.is_stopping:
                self._one(config, name, ending(head, time.time()))

    def _one(self, config: ServerConfig, name: str, reason: str) -> None:
        since = self._told.get(name)
        if reason and since is None:
            now = int(time.time())
            if self._tell(config, name, now, reason):
                self._told[name] = now
        elif since is not None and not reason and self._tell(config, name, since, ""):
            del self._told[name]
