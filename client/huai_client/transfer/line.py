"""Standing in line at an upstream that serves as many clients as it may.

Reads no clock but the one it is given.  Rule: a refusal for want of room is no failure as long as
one of our streams gets anything, and then for `patience` seconds more.  A stream that is
refused asks again after a pause that doubles until it is let in, with jitter.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PAUSE_MAX = 30.0
_DOUBLINGS = 10


class Line:
    """Shared by all streams of a transfer."""

    def __init__(
        self, patience: float, pause: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`patience` and the first `pause` in seconds."""
        self._patience = patience
        self._pause = pause
        self._clock = clock
        self._guard = threading.Lock()
        self._since: float | None = None
        self._refusals: dict[int, int] = {}
        self._standing = 0

    @property
    def standing(self) -> int:
        """How many streams stand in line now."""
        return self._standing

    def entered(self, stream: int) -> None:
        """`stream` was let in, and gets something."""
        with self._guard:
            self._since = None
            self._refusals.pop(stream, None)

    def refused(self, stream: int) -> float | None:
        """`stream` was not let in: seconds until it should ask again; None: patience is over."""
        with self._guard:
            now = self._clock()
            since = now if self._since is None else self._since
            self._since = since
            if now - since >= self._patience:
                return None
            before = self._refusals.get(stream, 0)
            self._refusals[stream] = before + 1
        longest = min(_PAUSE_MAX, self._pause * 2 ** min(before, _DOUBLINGS))
        pause: float = longest * random.uniform(0.5, 1.5)  # noqa: S311 - spreads load, hides nothing
        return min(pause, since + self._patience - now)

    @contextmanager
    def stood(self) -> Iterator[None]:
        """For as long as a stream stands in line."""
        with self._guard:
            self._standing += 1
        try:
            yield
        finally:
            with self._guard:
                self._standing -= 1
