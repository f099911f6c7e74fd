"""How fast services were: a record in the client root, by which mirrors are chosen.

Made of real transfers alone: each counts half, all before it the other half.  Rule: what was seen
more than a week ago is forgotten, and the record holds the hundred services seen last.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from huai_client.state.rows import read_rows, write_rows

_FORGOTTEN_SECONDS = 7 * 86_400
_SERVICES_MAX = 100
_TELLING = 64 << 10
"""Bytes: what is less says nothing about the rate."""
_MOST = 1e15
_USUAL = 4 << 20
"""Bytes, of the transfer by which services are compared."""


class Seen(NamedTuple):
    """What was seen of a service."""

    service: str
    """Scheme, host and port: `https://mirror.example`."""
    first_byte: float
    """Seconds from a question to its answer; 0: not known."""
    rate: float
    """Bytes a second; 0: not known."""
    time: int
    """When it was seen last, seconds since the epoch."""

    @property
    def expected(self) -> float:
        """Seconds for some megabytes, as far as that is known."""
        return self.first_byte + (_USUAL / self.rate if self.rate else 0.0)


class UpstreamSpeed:
    """The record; several threads may share it, and other processes use the same file."""

    def __init__(self, path: Path | None, clock: Callable[[], float] = time.time) -> None:
        """`path` names the file, which need not exist; None: nothing is kept on the disk."""
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, Seen] | None = None

    def seen(self, service: str) -> Seen | None:
        """What is known of `service`; None: nothing."""
        with self._lock:
            return self._all().get(service)

    def observe(self, service: str, size: int, seconds: float, first_byte: float = 0) -> None:
        """`size` bytes came within so many seconds; the first one after `first_byte` (0: ?)."""
        rate = size / seconds if size >= _TELLING and seconds > 0 else 0.0
        if not service or not (rate or first_byte):
            return
        with self._lock:
            if self._path is not None:
                self._known = None  # others may have written it
            known = self._all()
            before = known.pop(service, Seen(service, 0, 0, 0))
            mean = _mean(before.first_byte, first_byte), _mean(before.rate, rate)
            known[service] = Seen(service, *mean, int(self._clock()))
            for oldest in sorted(known.values(), key=lambda each: each.time)[:-_SERVICES_MAX]:
                del known[oldest.service]
            write_rows(self._path, known.values())

    def _all(self) -> dict[str, Seen]:
        if self._known is None:
            found = [_seen(row) for row in read_rows(self._path)]
            now = self._clock()
            self._known = {
                each.service: each
                for each in found
                if each is not None and 0 <= now - each.time < _FORGOTTEN_SECONDS
            }
        return self._known


def _mean(before: float, now: float) -> float:
    """Of what is known of both."""
    return (before + now) / 2 if before and now else before or now


def _seen(row: list[object]) -> Seen | None:
    """A row of the record; None: it is malformed."""
    match row:
        case [str() as service, int() | float() as first, int() | float() as rate, int() as when]:
            if all(0 <= each <= _MOST for each in (first, rate, when)):
                return Seen(service, float(first), float(rate), when)
    return None
