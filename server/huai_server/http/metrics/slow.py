"""The slowest requests of the last hour: a bounded record in memory.

A request takes the time until its response begins, so that a slow reader or a stream of events does
not count.  Rule: a record has no query, no header and no token.
"""

import heapq
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from huai_schema.paths import show
from huai_server.http.access import without_tokens

LEAST_SECONDS = 0.1
"""A request that takes less is not recorded."""
KEPT = 20
"""The slowest requests of each interval that are kept, and the most that are reported."""
_INTERVAL, _INTERVALS = 300, 12
"""Seconds; the last of them, and the current one, cover an hour."""
_PATH_LENGTH = 200
_MODULE = re.compile(r"/(?:modules|content|(git))/+([^/]+?)(?(1)(?:\.git)?)(?:/|$)")
"""The name of a module, or of its repository, in a path."""


class SlowRequest(NamedTuple):
    """A request that took long; the longest is the greatest."""

    seconds: float
    """The time until the response began."""
    time: int
    """Seconds since the epoch at which the response began."""
    method: str
    path: str
    """The path without the query, in display form, cut at 200 characters."""
    status: int
    client: str
    """The client's IPv4 address or /64 of IPv6; empty if unknown."""
    module: str
    """The module that the path names, whether it exists or not; empty without one."""


class SlowRequests:
    """The slowest requests of the last hour."""

    def __init__(self, client: Callable[[Mapping[str, Any]], str]) -> None:
        """`client` returns the address of a request's client."""
        self._client = client
        self._intervals: deque[tuple[int, list[SlowRequest]]] = deque(maxlen=_INTERVALS + 1)
        """The number of each interval since the epoch, with the heap of its slowest requests."""

    def add(self, scope: Mapping[str, Any], status: int, seconds: float) -> None:
        """Record the request `scope`, if it is among the slowest of its interval."""
        if seconds < LEAST_SECONDS:
            return
        now = int(time.time())
        number = now // _INTERVAL
        if not self._intervals or self._intervals[-1][0] != number:
            self._intervals.append((number, []))
        path = show(without_tokens(scope["path"]).encode(errors="replace"))[:_PATH_LENGTH]
        client = self._client(scope).removesuffix("/32")
        match = _MODULE.search(scope["path"])
        module = match[2] if match else ""
        request = SlowRequest(seconds, now, scope["method"], path, status, client, module)
        heap = self._intervals[-1][1]
        if len(heap) < KEPT:
            heapq.heappush(heap, request)
        else:
            heapq.heappushpop(heap, request)

    def slowest(self) -> list[SlowRequest]:
        """Return all that is kept of the last hour, the slowest first."""
        begin = time.time() - _INTERVAL * _INTERVALS
        return sorted(
            (each for _, heap in self._intervals for each in heap if each.time > begin),
            reverse=True,
        )
