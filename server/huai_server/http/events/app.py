"""`GET /api/v1/events`: server-sent events, one for each new commit (HTML, section 9.2).

An ASGI application beside the framework, so that a subscriber costs little memory for as long as it
stays.  Whoever connects is told of the newest commits first, so that nothing is lost between two
connections; with the `Last-Event-ID` of this start of the server, of those alone that came since.

Rules:

- What is sent is small or waits for its reader: `Connection` drops one that does not read, and the
  kernel one that is gone, since heartbeats stay without an answer.
- A subscriber is not one of the connections that are limited, but has a place among its like.
"""

import asyncio
import random
import re
from collections.abc import Container, Coroutine, Iterable
from typing import Any
from urllib.parse import parse_qs

from huai_server.http.access import Access, Asker, asker_of
from huai_server.http.asgi.body import Body, Inbox, Receive, race
from huai_server.http.asgi.connection import EXTENSION
from huai_server.http.asgi.connections import address_of, client_address
from huai_server.http.asgi.errors import READ_METHODS, ClientGoneError, HttpError, check_method
from huai_server.http.asgi.limiter import Limiter
from huai_server.http.asgi.responder import Send, as_json
from huai_server.http.events.news import Event, News
from huai_server.http.settings import ServeSettings

Scope = dict[str, Any]

PATH = "/api/v1/events"
HEARTBEAT_SECONDS = 15.0
"""At most, between two things that a subscriber is sent."""

_QUERY_BYTES = 8 << 10
_RETRY_MILLISECONDS = 5000
_HEARTBEAT = b":\n\n"
_PIECE = 8 << 10
"""Bytes that are sent at once."""
_NUMBER = re.compile(rb"([0-9a-f]{16})-([0-9]{1,18})")
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx passes on what comes, whatever its configuration says
    (b"connection", b"close"),
]


class EventsApp:
    """Tells subscribers of new commits."""

    def __init__(self, settings: ServeSettings, news: News, access: Access) -> None:
        """`news` is shared with whoever else wants to know."""
        self._news = news
        self._access = access
        self._timeout = settings.request_timeout
        self._address_of = address_of(settings.proxies)
        each = settings.max_connections_per_address
        self._places = Limiter(settings.max_subscribers, 0, 0, each=each)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        try:
            check_method(scope["method"], *READ_METHODS)
            await self._answer(scope, receive, send)
        except HttpError as error:
            await as_json(error)(scope, receive, send)
        except ClientGoneError:
            pass  # leaving the answer unfinished makes the server drop the connection

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        wanted = _wanted(scope["query_string"])
        number, asker = self._last_seen(scope["headers"]), asker_of(scope)
        body = Body(Inbox(receive), b"", 0, self._timeout)
        await body.open()
        async with self._places.slot(client_address(scope, self._address_of)):
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            if scope["method"] == "GET" and not self._news.stopped:
                scope["extensions"][EXTENSION].stay()
                # A head may have 64 KiB, and nobody asks for it any more.
                scope["headers"].clear()
                scope["query_string"] = scope["raw_path"] = b""
                telling = self._tell(send, asker, wanted, number)
                await self._joined(telling, body)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _joined(self, telling: Coroutine[Any, Any, None], body: Body) -> None:
        try:
            await self._news.join()
            await race(telling, body.gone())
        finally:
            telling.close()  # of one that was never begun
            self._news.leave()

    async def _tell(
        self, send: Send, asker: Asker, wanted: frozenset[str] | None, number: int
    ) -> None:
        """Send all that is new, and what comes, until the server stops."""
        await _send(send, b"retry: %d\n\n" % _RETRY_MILLISECONDS)
        clock = asyncio.get_running_loop().time
        due = clock() + _pause()
        while not self._news.stopped:
            # Not the number of the last one: its module may be gone.
            events, number = self._news.after(number), self._news.number
            for piece in _pieces(events, wanted, self._access.seen_by(asker)):
                await _send(send, piece)
                due = clock() + _pause()
            if self._news.number == number:
                await self._news.wait(max(0.0, due - clock()))
                # Also while there is news that is not for this subscriber.
                if clock() >= due and not self._news.stopped:
                    await _send(send, _HEARTBEAT)
                    due = clock() + _pause()

    def _last_seen(self, headers: Iterable[tuple[bytes, bytes]]) -> int:
        """The number of the last event that the subscriber knows; 0: it has to hear of all."""
        said = next((value for name, value in headers if name == b"last-event-id"), b"")
        found = _NUMBER.fullmatch(said)
        if found is None or found[1].decode() != self._news.epoch:
            return 0
        return min(int(found[2]), self._news.number)


def _wanted(query: bytes) -> frozenset[str] | None:
    """The modules that the subscriber asks for; None: all, also those that come later."""
    if len(query) > _QUERY_BYTES:
        raise HttpError(
            414,
            f"the address is longer than {_QUERY_BYTES} bytes",
            hint="leave out module=, and hear of all modules",
        )
    return frozenset(parse_qs(query.decode("latin-1")).get("module", ())) or None


def _pause() -> float:
    """Seconds until the next heartbeat: not of all subscribers at the same moment."""
    return random.uniform(HEARTBEAT_SECONDS / 2, HEARTBEAT_SECONDS)  # noqa: S311


def _pieces(
    events: Iterable[Event], wanted: frozenset[str] | None, seen: Container[str]
) -> Iterable[bytes]:
    held = bytearray()
    for event in events:
        if event.module in seen and (wanted is None or event.module in wanted):
            held += event.text
            if len(held) >= _PIECE:
                yield bytes(held)
                held.clear()
    if held:
        yield bytes(held)


async def _send(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})
