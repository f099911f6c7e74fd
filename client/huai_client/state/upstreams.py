"""The records about the services of upstreams: recent failures, and speeds.

Two records in the client root that only influence an order: runs try services that failed last, and
choose mirrors by their speed.  Rule: a file is replaced as a whole and not synced to the disk, and
a lost or damaged one counts as empty, so nothing but an order may depend on it.  Each holds a
hundred services.
"""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Generic, NamedTuple, TypeVar

import msgspec

from huai_program.durable import replace_file

_BYTES_MAX = 1 << 20
_SERVICES_MAX = 100
_FIRST_PAUSE, _LONGEST_PAUSE = 600, 3600
_FAILURE_SECONDS, _SPEED_SECONDS = 86_400, 7 * 86_400
"""Seconds after which a failure, from the end of its pause, and a measurement are forgotten."""
_DOUBLINGS = 10
_REASON_MAX = 300
_TELLING = 64 << 10
"""The smallest transfer, in bytes, that shows the rate."""
_USUAL = 4 << 20
"""The size in bytes of the transfer by which services are compared."""
_Figure = Annotated[float, msgspec.Meta(ge=0, le=1e15)]


class Failing(NamedTuple):
    """A service that failed, and has not responded since."""

    service: str
    """Scheme, host and port (`rsync://mirror.example:873`), or a URL that alone failed."""
    failures: Annotated[int, msgspec.Meta(ge=1)]
    """The number of pauses in a row: a failure before `until` is not counted."""
    since: int
    """The time of the first failure, seconds since the epoch."""
    until: int
    """The end of its pause, seconds since the epoch; until then it is tried last."""
    reason: str
    """The last failure that was counted, for people."""


class ServiceSpeed(NamedTuple):
    """The measured speed of a service."""

    service: str
    """Scheme, host and port: `https://mirror.example`."""
    first_byte: _Figure
    """The time from a request to its response in seconds; 0 if unknown."""
    rate: _Figure
    """The rate in bytes per second; 0 if unknown."""
    time: Annotated[int, msgspec.Meta(ge=0, le=10**15)]
    """The time of the last measurement, seconds since the epoch."""

    @property
    def expected(self) -> float:
        """The expected time for some megabytes in seconds, by the known figures."""
        return self.first_byte + (_USUAL / self.rate if self.rate else 0.0)


R = TypeVar("R", bound=Failing | ServiceSpeed)


class _Services(Generic[R]):
    """The rows of one file; several threads may share it, and other processes use it as well."""

    def __init__(
        self,
        path: Path | None,
        decoder: msgspec.json.Decoder[list[R]],
        refreshed: Callable[[R], R | None],
        age: Callable[[R], float],
    ) -> None:
        """Use `path`, which need not exist; without it nothing is written.

        `refreshed` brings a row that was read up to date, or returns None to forget it.  `age` is a
        key: the rows of the least are dropped first.
        """
        self._path = path
        self._decoder = decoder
        self._refreshed = refreshed
        self._age = age
        self._lock = threading.Lock()
        self.rows = self._read()

    def change(self, service: str, update: Callable[[R | None], R | None]) -> None:
        """Replace the row of `service` by what `update` returns for it; None: by no row.

        `update` gets the present row, or None.  Drops the oldest rows above a hundred, and writes
        the file; a failure to write is ignored.
        """
        with self._lock:
            # Other processes may have written it.
            rows = self.rows if self._path is None else self._read()
            row = update(rows.pop(service, None))
            if row is not None:
                rows[service] = row
            for oldest in sorted(rows.values(), key=self._age)[:-_SERVICES_MAX]:
                del rows[oldest.service]
            self.rows = rows
            if self._path is not None:
                fresh = self._path.with_suffix(f".{os.getpid()}.new")
                with suppress(OSError):
                    # A message may quote a response that only this user may read.
                    content = msgspec.json.encode([*rows.values()])
                    replace_file(self._path, content, fresh, permissions=0o600, durable=False)

    def _read(self) -> dict[str, R]:
        """Read the recent rows, by service; none if the file is missing or unreadable."""
        if self._path is None:
            return {}
        try:
            with self._path.open("rb") as file:
                rows = map(self._refreshed, self._decoder.decode(file.read(_BYTES_MAX)))
                return {row.service: row for row in rows if row is not None}
        except (OSError, ValueError, RecursionError):
            return {}


class UpstreamHealth:
    """The services that failed recently, so that runs try these last.

    After a failure a service is tried after the others for ten minutes; a failure after that pause
    starts one of twenty minutes, and so on up to an hour.  It is never left out.
    """

    def __init__(self, path: Path | None, clock: Callable[[], float] = time.time) -> None:
        """Use the file `path`; None: remember failures in this run alone."""
        self._clock = clock
        self._services = _Services(
            path, msgspec.json.Decoder(list[Failing]), self._refreshed, lambda row: row.until
        )

    def failing(self) -> list[Failing]:
        """Return all recorded services, sorted by name."""
        return sorted(self._services.rows.values())

    def failed_lately(self, *services: str) -> bool:
        """Return True if one of `services` is in its pause, and should be tried after others."""
        now, rows = self._clock(), self._services.rows
        return any(service in rows and rows[service].until > now for service in services)

    def failed(self, service: str, reason: str, *, seconds: float = 0) -> None:
        """Record that `service` failed, unless it is in its pause, and begin a pause.

        `seconds`: the least pause, up to an hour.
        """
        now, before = int(self._clock()), self._services.rows.get(service)
        if not service or (before and before.until > now):
            return
        failures, since = (before.failures + 1, before.since) if before else (1, now)
        doubled = _FIRST_PAUSE * 2 ** min(failures - 1, _DOUBLINGS)
        until = now + int(min(max(doubled, seconds), _LONGEST_PAUSE))
        reason = reason[:_REASON_MAX].encode("utf-8", "backslashreplace").decode()
        failing = Failing(service, failures, since, until, reason)
        self._services.change(service, lambda _: failing)

    def succeeded(self, *services: str) -> None:
        """Record that `services` responded: their failures are forgotten."""
        for service in services:
            if service in self._services.rows:
                self._services.change(service, lambda _: None)

    def _refreshed(self, row: Failing) -> Failing | None:
        """Return the row, corrected if the clock was set back; None if it is too old."""
        now = int(self._clock())
        if row.since < 0 or now - row.until >= _FAILURE_SECONDS:
            return None
        # If the clock was set back, the pause still has to end within an hour.
        return row._replace(since=min(row.since, now), until=min(row.until, now + _LONGEST_PAUSE))


class UpstreamSpeed:
    """The speed of services, of real transfers only: each counts half, all before it the rest."""

    def __init__(self, path: Path | None, clock: Callable[[], float] = time.time) -> None:
        """Use the file `path`; None: remember speeds in this run alone."""
        self._clock = clock
        self._services = _Services(
            path, msgspec.json.Decoder(list[ServiceSpeed]), self._refreshed, lambda row: row.time
        )

    def of_service(self, service: str) -> ServiceSpeed | None:
        """Return the speed of `service`; None if it was not measured within a week."""
        return self._services.rows.get(service)

    def observe(self, service: str, size: int, seconds: float, first_byte: float = 0) -> None:
        """Record a transfer of `size` bytes in `seconds`; one below 64 KiB shows no rate.

        Its first byte came after `first_byte` seconds, 0 if unknown.
        """
        rate = size / seconds if size >= _TELLING and seconds > 0 else 0.0
        if not service or not (rate or first_byte):
            return

        def update(before: ServiceSpeed | None) -> ServiceSpeed:
            """Return the means with the new measurement."""
            _, old_first_byte, old_rate, _ = before or ServiceSpeed(service, 0, 0, 0)
            mean = _mean(old_first_byte, first_byte), _mean(old_rate, rate)
            return ServiceSpeed(service, *mean, int(self._clock()))

        self._services.change(service, update)

    def _refreshed(self, row: ServiceSpeed) -> ServiceSpeed | None:
        """Return the row; None if it is too old, or newer than the clock."""
        return row if 0 <= self._clock() - row.time < _SPEED_SECONDS else None


def _mean(before: float, now: float) -> float:
    """Return the mean of two measurements, 0 being unknown."""
    return (before + now) / 2 if before and now else before or now
