"""Counters of requests and sent bytes, by kind.

Rule: this runs for every request, so it only adds; no label comes from a request, so the number of
labels is bounded.
"""

import time
from collections import Counter
from collections.abc import Mapping, MutableMapping
from typing import Any

from huai_server.http.asgi.responder import Send
from huai_server.http.metrics.slow import SlowRequests

_PREFIXES = (
    ("/git/", "git"),
    ("/content/", "content"),
    ("/api/v1/events", "events"),
    ("/api/", "api"),
    ("/metrics", "metrics"),
    ("/healthz", "health"),
    ("", "page"),
)


class Traffic:
    """The traffic of one server since it started."""

    def __init__(self, slow: SlowRequests) -> None:
        """Record the slowest requests in `slow`."""
        self.slow = slow
        self.requests: Counter[tuple[str, int]] = Counter()
        """Responses started, by kind and status."""
        self.sent_bytes = Counter({kind: 0 for _, kind in _PREFIXES})
        """Bytes of response bodies, by kind."""
        self.running = Counter({kind: 0 for _, kind in _PREFIXES})
        """Responses in progress, by kind."""

    def counted_send(self, scope: Mapping[str, Any], send: Send) -> "CountedSend":
        """Return a counting `send` for the request `scope`; the caller must `end` it."""
        return CountedSend(self, scope, send)


def kind_of(path: str) -> str:
    """Return the kind of a request, such as `git` or `page`, by its path."""
    return next(kind for prefix, kind in _PREFIXES if path.startswith(prefix))


class CountedSend:
    """The `send` of one request, with its counters."""

    __slots__ = ("_begun", "_kind", "_scope", "_send", "_traffic")

    def __init__(self, traffic: Traffic, scope: Mapping[str, Any], send: Send) -> None:
        """Count the request as running, in `traffic`, from now on."""
        self._traffic = traffic
        self._scope = scope
        self._kind = kind_of(scope["path"])
        self._send = send
        self._begun = time.monotonic()
        traffic.running[self._kind] += 1

    def end(self) -> None:
        """Count the request as running no longer, however it ended."""
        self._traffic.running[self._kind] -= 1

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        """Send and count a part of the response."""
        if message["type"] == "http.response.start":
            self._traffic.requests[self._kind, message["status"]] += 1
            seconds = time.monotonic() - self._begun
            self._traffic.slow.add(self._scope, message["status"], seconds)
        await self._send(message)
        if message["type"] == "http.response.body":
            self._traffic.sent_bytes[self._kind] += len(message.get("body", b""))
