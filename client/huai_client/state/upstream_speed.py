"""The speed of services: a record in the client root, by which mirrors are chosen.

Made of real transfers only: each counts half, all before it the other half.  Rule: measurements
older than a week are dropped, and the record holds the hundred services measured last.
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
"""The smallest transfer, in bytes, that shows the rate."""
_MOST = 1e15
_USUAL = 4 << 20
"""The size in bytes of the transfer by which services are compared."""


class ServiceSpeed(NamedTuple):
    """The measured speed of a service."""

    service: str
    """Scheme, host and port: `https://mirror.example`."""
    first_byte: float
    """The time from a request to its response in seconds; 0 if unknown."""
    rate: float
    """The rate in bytes per second; 0 if unknown."""
    time: int
    """The time of the last measurement, seconds since the epoch."""

    @property
    def expected(self) -> float:
        """The expected time for some megabytes in seconds, by the known figures."""
        return self.first_byte + (_USUAL / self.rate if self.rate else 0.0)


class UpstreamSpeed:
    """The record; several threads may share it, and other processes use the same file."""

    def __init__(self, path: Path | None, clock: Callable[[], float] = time.time) -> None:
        """Use the file `path`, which need not exist; without it nothing is written."""
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._services: dict[str, ServiceSpeed] | None = None

    def of_service(self, service: str) -> ServiceSpeed | None:
        """Return the speed of `service`, or None."""
        with self._lock:
            return self._all().get(service)

    def observe(self, service: str, size: int, seconds: float, first_byte: float = 0) -> None:
        """Record a transfer of `size` bytes in `seconds`, the first after `first_byte` or 0."""
        rate = size / seconds if size >= _TELLING and seconds > 0 else 0.0
        if not service or not (rate or first_byte):
            return
        with self._lock:
            if self._path is not None:
                self._services = None  # other processes may have written it
            services = self._all()
            before = services.pop(service, ServiceSpeed(service, 0, 0, 0))
            mean = _mean(before.first_byte, first_byte), _mean(before.rate, rate)
            services[service] = ServiceSpeed(service, *mean, int(self._clock()))
            for oldest in sorted(services.values(), key=lambda each: each.time)[:-_SERVICES_MAX]:
                del services[oldest.service]
            write_rows(self._path, services.values())

    def _all(self) -> dict[str, ServiceSpeed]:
        if self._services is None:
            rows = [_read_row(row) for row in read_rows(self._path)]
            now = self._clock()
            self._services = {
                each.service: each
                for each in rows
                if each is not None and 0 <= now - each.time < _FORGOTTEN_SECONDS
            }
        return self._services


def _mean(before: float, now: float) -> float:
    """Return the mean of two measurements, 0 being unknown."""
    return (before + now) / 2 if before and now else before or now


def _read_row(row: list[object]) -> ServiceSpeed | None:
    """Read a row of the record; returns None if it is malformed."""
    match row:
        case [str() as service, int() | float() as first, int() | float() as rate, int() as when]:
            if all(0 <= each <= _MOST for each in (first, rate, when)):
                return ServiceSpeed(service, float(first), float(rate), when)
    return None
