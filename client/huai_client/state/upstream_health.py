"""Services that failed recently: a record in the client root, so that runs try these last.

Rule: after a failure a service is tried after the others for ten minutes; a failure after that
pause starts one of twenty minutes, and so on up to an hour.  It is never left out.  The record
holds the hundred services whose pauses end last, each for a day after its pause.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from huai_client.state.rows import read_rows, write_rows

_FIRST_SECONDS = 600
_LONGEST_SECONDS = 3600
_FORGOTTEN_SECONDS = 86400
_DOUBLINGS = 10
_REASON_MAX = 300
_SERVICES_MAX = 100


class Failing(NamedTuple):
    """A service that failed, and has not responded since."""

    service: str
    """Scheme, host and port (`rsync://mirror.example:873`), or a URL that alone failed."""
    failures: int
    """The number of pauses in a row: a failure before `until` is not counted."""
    since: int
    """The time of the first failure, seconds since the epoch."""
    until: int
    """The end of its pause, seconds since the epoch; until then it is tried last."""
    reason: str
    """The last failure that was counted, for people."""


class UpstreamHealth:
    """The record; several threads may share it, and other processes use the same file."""

    def __init__(self, path: Path | None, clock: Callable[[], float] = time.time) -> None:
        """Load the file `path`, which need not exist; without it nothing is written."""
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._records = self._load()

    def failing(self) -> list[Failing]:
        """Return all recorded services, sorted by name."""
        return sorted(self._records.values())

    def failed_lately(self, *services: str) -> bool:
        """Return True if one of `services` is in its pause, and should be tried after others."""
        now = self._clock()
        records = (self._records.get(service) for service in services)
        return any(each is not None and each.until > now for each in records)

    def failed(self, service: str, reason: str, *, seconds: float = 0) -> None:
        """Record that `service` failed; `seconds` is the shortest pause, as it requests."""
        now = int(self._clock())
        before = self._records.get(service)
        if not service or (before and before.until > now):
            return
        failures = before.failures + 1 if before else 1
        doubled = _FIRST_SECONDS * 2 ** min(failures - 1, _DOUBLINGS)
        pause = int(min(max(doubled, seconds), _LONGEST_SECONDS))
        since = before.since if before else now
        failing = Failing(service, failures, since, now + pause, reason[:_REASON_MAX])
        self._change(service, failing)

    def succeeded(self, *services: str) -> None:
        """Record that `services` responded: their failures are forgotten."""
        for service in services:
            if service in self._records:
                self._change(service, None)

    def _change(self, service: str, failing: Failing | None) -> None:
        with self._lock:
            records = self._records if self._path is None else self._load()
            records.pop(service, None)
            if failing:
                records[service] = failing
            for oldest in sorted(records.values(), key=_age)[:-_SERVICES_MAX]:
                del records[oldest.service]
            self._records = records
            write_rows(self._path, records.values())

    def _load(self) -> dict[str, Failing]:
        try:
            records = [_failing(row) for row in read_rows(self._path)]
        except TypeError:
            return {}
        now = int(self._clock())
        return {
            # If the clock was set back, the pause still has to end within an hour.
            each.service: each._replace(
                since=min(each.since, now), until=min(each.until, now + _LONGEST_SECONDS)
            )
            for each in records
            if now - each.until < _FORGOTTEN_SECONDS and each.since >= 0 and each.failures > 0
        }


def _age(failing: Failing) -> int:
    return failing.until


def _failing(row: list[Any]) -> Failing:
    """Read a row of the record; raises `TypeError` if it is malformed."""
    failing = Failing(*row)
    numbers = (failing.failures, failing.since, failing.until)
    texts = (failing.service, failing.reason)
    if not all(type(each) is int for each in numbers) or not all(
        type(each) is str for each in texts
    ):
        raise TypeError(row)
    return failing
