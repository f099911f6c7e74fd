"""What requests came and what was sent, counted by kind.

Rule: this is done for every request, so it is an addition and nothing more; no label comes from a
request, so their number has a bound.
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
)
_PAGE = "page"


class Traffic:
    """All of one server since it started."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        """Answers that began, by kind and status."""
        self.sent: Counter[str] = Counter()
        """Bytes of their bodies, by kind."""
        self.running: Counter[str] = Counter()
        """Answers that are not at their end, by kind."""

    def watch(self, path: str, send: Send) -> "Watched":
        """What a request for `path` sends through `send`; to be ended."""
        return Watched(self, kind_of(path), send)


def kind_of(path: str) -> str:
    """The kind of a request, by its path."""
    return next((kind for prefix, kind in _PREFIXES if path.startswith(prefix)), _PAGE)


class Watched:
    """The `send` of one request, which is counted on its way."""

    __slots__ = ("_kind", "_send", "_traffic")

    def __init__(self, traffic: Traffic, kind: str, send: Send) -> None:
        """The request is running from now on."""
        self._traffic = traffic
        self._kind = kind
        self._send = send
        traffic.running[kind] += 1

    def end(self) -> None:
        """The request is over, whatever came of it."""
        self._traffic.running[self._kind] -= 1

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        """Send a part of the answer."""
        if message["type"] == "http.response.start":
            self._traffic.requests[self._kind, message["status"]] += 1
        await self._send(message)
        if message["type"] == "http.response.body":
            self._traffic.sent[self._kind] += len(message.get("body", b""))
