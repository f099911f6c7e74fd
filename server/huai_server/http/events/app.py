"""`GET /api/v1/events`: server-sent events, one for each new commit (HTML, section 9.2).

An ASGI application next to the framework, so that a connected subscriber costs little memory.
A subscriber first gets the newest commits, so that nothing is lost between two connections.  If
its `Last-Event-ID` is of this run of the server, it gets only those that came since.

Rules:

- Messages are small or wait for their reader: `Connection` drops one that does not read, and the
  kernel one that is gone, because heartbeats stay unacknowledged.
- Subscribers do not count as connections; they have a limit of their own.
"""

import asyncio
import random
import re
from collections.abc import Container, Coroutine, Iterable
from typing import Any
from urllib.parse import parse_qs

from huai_server.config.tables import Listen
from huai_server.http.access import Access, Credentials, credentials_of
from huai_server.http.asgi.body import Body, Inbox, Receive, race
from huai_server.http.asgi.connection import EXTENSION
from huai_server.http.asgi.errors import READ_METHODS, ClientGoneError, HttpError, check_method
from huai_server.http.asgi.limiter import Limiter
from huai_server.http.asgi.responder import Send
from huai_server.http.events.news import Event, News

Scope = dict[str, Any]

PATH = "/api/v1/events"
HEARTBEAT_SECONDS = 15.0
"""The longest time between two messages to a subscriber."""

_QUERY_BYTES = 8 << 10
_RETRY_MILLISECONDS = 5000
_HEARTBEAT = b":\n\n"
_PIECE = 8 << 10
_NUMBER = re.compile(rb"([0-9a-f]{16})-([0-9]{1,18})")
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx forwards at once, whatever its configuration says
    (b"connection", b"close"),
]


class EventsApp:
    """The application that notifies subscribers of new commits."""

    def __init__(self, settings: Listen, news: News, access: Access) -> None:
        self._news = news
        self._access = access
        self._timeout = settings.timeout
        per_address = settings.max_connections_per_address
        self._slots = Limiter(settings.max_subscribers, 0, 0, per_address=per_address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a subscriber until it goes or the server stops; raises `HttpError`."""
        try:
            check_method(scope["method"], *READ_METHODS)
            await self._answer(scope, receive, send)
        except ClientGoneError:
            pass  # an unfinished response makes the server drop the connection

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head, and events until the client goes; drops headers from `scope`."""
        modules = _parse_modules(scope["query_string"])
        number, credentials = self._last_seen(scope["headers"]), credentials_of(scope)
        body = Body(Inbox(receive), b"", 0, self._timeout)
        await body.open()
        async with self._slots.slot(self._access.client(scope)):
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            if scope["method"] == "GET" and not self._news.stopped:
                scope["extensions"][EXTENSION].keep_for_events()
                # A head may have 64 KiB, and is needed no more.
                scope["headers"].clear()
                scope["query_string"] = scope["raw_path"] = b""
                sending = self._send_events(send, credentials, modules, number)
                await self._send_until_gone(sending, body)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_until_gone(self, sending: Coroutine[Any, Any, None], body: Body) -> None:
        """Run `sending` until the client has gone, as a subscriber to the news."""
        try:
            await self._news.subscribe()
            await race(sending, body.wait_for_disconnect())
        finally:
            sending.close()  # if it was never started
            self._news.unsubscribe()

    async def _send_events(
        self, send: Send, credentials: Credentials, modules: frozenset[str] | None, number: int
    ) -> None:
        """Send the events after `number` and new ones, and heartbeats, until the server stops."""
        await _send_piece(send, b"retry: %d\n\n" % _RETRY_MILLISECONDS)
        clock = asyncio.get_running_loop().time
        due = clock() + _pause()
        while not self._news.stopped:
            # Not the number of the last event: its module may have been removed.
            events, number = self._news.after(number), self._news.number
            for piece in _pieces(events, modules, self._access.seen_by(credentials)):
                await _send_piece(send, piece)
                due = clock() + _pause()
            if self._news.number == number:
                await self._news.wait(max(0.0, due - clock()))
                # Also while all news is about modules of other subscribers.
                if clock() >= due and not self._news.stopped:
                    await _send_piece(send, _HEARTBEAT)
                    due = clock() + _pause()

    def _last_seen(self, headers: Iterable[tuple[bytes, bytes]]) -> int:
        """Return the number in the header `Last-Event-ID`; 0 without a valid one of this run."""
        header = next((value for name, value in headers if name == b"last-event-id"), b"")
        match = _NUMBER.fullmatch(header)
        if match is None or match[1].decode() != self._news.epoch:
            return 0
        return min(int(match[2]), self._news.number)


def _parse_modules(query: bytes) -> frozenset[str] | None:
    """Parse a query to the requested modules; None for all, also those added later.

    Raises status 414 if it is too long.
    """
    if len(query) > _QUERY_BYTES:
        raise HttpError(
            414,
            f"the address is longer than {_QUERY_BYTES} bytes",
            hint="leave out module= to get events of all modules",
        )
    return frozenset(parse_qs(query.decode("latin-1")).get("module", ())) or None


def _pause() -> float:
    """Return the seconds until the next heartbeat, spread over the subscribers."""
    return random.uniform(HEARTBEAT_SECONDS / 2, HEARTBEAT_SECONDS)  # noqa: S311


def _pieces(
    events: Iterable[Event], modules: frozenset[str] | None, visible: Container[str]
) -> Iterable[bytes]:
    """Yield the texts of those events that are requested and visible, joined to pieces."""
    buffer = bytearray()
    for event in events:
        if event.module in visible and (modules is None or event.module in modules):
            buffer += event.text
            if len(buffer) >= _PIECE:
                yield bytes(buffer)
                buffer.clear()
    if buffer:
        yield bytes(buffer)


async def _send_piece(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})
