"""Counters of requests and sent bytes, by kind.

Rule: this runs for every request, so it only adds; no label comes from a request, so the number of
labels is bounded.
"""

from collections import Counter
from collections.abc import MutableMapping
from typing import Any

from huai_server.http.asgi.responder import Send

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

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        """Responses started, by kind and status."""
        self.sent_bytes = Counter({kind: 0 for _, kind in _PREFIXES})
        """Bytes of response bodies, by kind."""
        self.running = Counter({kind: 0 for _, kind in _PREFIXES})
        """Responses in progress, by kind."""

    def counted_send(self, path: str, send: Send) -> "CountedSend":
        """Return a counting `send` for a request for `path`; the caller must `end` it."""
        return CountedSend(self, kind_of(path), send)


def kind_of(path: str) -> str:
    """Return the kind of a request, by its path."""
    return next(kind for prefix, kind in _PREFIXES if path.startswith(prefix))


class CountedSend:
    """The `send` of one request, with its counters."""

    __slots__ = ("_kind", "_send", "_traffic")

    def __init__(self, traffic: Traffic, kind: str, send: Send) -> None:
        """Count the request as running, in `traffic`, from now on."""
        self._traffic = traffic
        self._kind = kind
        self._send = send
        traffic.running[kind] += 1

    def end(self) -> None:
        """Count the request as running no longer, however it ended."""
        self._traffic.running[self._kind] -= 1

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        """Send and count a part of the response."""
        if message["type"] == "http.response.start":
            self._traffic.requests[self._kind, message["status"]] += 1
        await self._send(message)
        if message["type"] == "http.response.body":
            self._traffic.sent_bytes[self._kind] += len(message.get("body", b""))
