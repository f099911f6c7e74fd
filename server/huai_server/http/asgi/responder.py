"""Responses in ASGI messages: plain ones, and those of git, in one part or in many.

Sending waits for a slow reader; the connection limits how long.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from starlette.responses import JSONResponse

from huai_server.http.asgi.body import Inbox
from huai_server.http.asgi.errors import ClientGoneError, HttpError

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_SLICE = 64 << 10
_PIECE = 256 << 10
_LINGER_SECONDS = 2.0
FOREVER: Headers = [(b"cache-control", b"public, max-age=31536000, immutable")]
"""The caching of a resource that never changes under its address."""
NO_CACHE: Headers = [
    (b"expires", b"Fri, 01 Jan 1980 00:00:00 GMT"),
    (b"pragma", b"no-cache"),
    (b"cache-control", b"no-cache, max-age=0, must-revalidate"),
]


class Responder:
    """One response of git: `send_all`, an open `file`, or `piece` any number of times and `end`."""

    __slots__ = ("_caching", "_content_type", "_prefix", "_send", "started")

    def __init__(
        self, send: Send, content_type: bytes, prefix: bytes, caching: Headers = NO_CACHE
    ) -> None:
        """`prefix` comes before the body; `caching` holds the headers for caches."""
        self._send = send
        self._content_type = content_type
        self._prefix = prefix
        self._caching = caching
        self.started = False

    async def send_all(self, body: bytes) -> None:
        """Send `body` and its length."""
        await self.begin(len(body))
        for at in range(0, len(body) - _SLICE, _SLICE):
            await self.piece(body[at : at + _SLICE])
        await self.end(body[(len(body) - 1) // _SLICE * _SLICE :] if body else b"")

    async def file(self, handle: int) -> None:
        """Send an open file and its length, at the reader's pace; the caller closes it.

        Raises `ClientGoneError` if the file shrinks meanwhile.
        """
        size = os.fstat(handle).st_size
        await self.begin(size)
        for at in range(0, size, _PIECE):
            piece = await asyncio.to_thread(os.pread, handle, _PIECE, at)
            if not piece:
                raise ClientGoneError("a file ended early")
            await self.piece(piece)
        await self.end()

    async def begin(self, size: int) -> None:
        """Send the head of a response with `size` bytes after the prefix."""
        await self._start([(b"content-length", b"%d" % (len(self._prefix) + size))])

    async def piece(self, data: bytes) -> None:
        """Send a part, at the reader's pace; before it the head, without a length, if not sent."""
        if not self.started:
            await self._start([])
        await self._body(data, more=True)

    async def end(self, data: bytes = b"") -> None:
        """Send the last part, if any, and end the response."""
        await self._body(data, more=False)

    async def _body(self, data: bytes, *, more: bool) -> None:
        """Send a part of the body; the prefix comes before the first one."""
        if self._prefix:
            data, self._prefix = self._prefix + data, b""
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def _start(self, more: Headers) -> None:
        """Send status 200 and the headers."""
        self.started = True
        headers = [(b"content-type", self._content_type), *self._caching, *more]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})


def as_json(error: HttpError) -> JSONResponse:
    """Return the response for an error as JSON: `error` and `hint`."""
    body = {"error": error.message, "hint": error.hint}
    return JSONResponse(body, error.status, headers=error.headers)


async def send_error(error: HttpError, inbox: Inbox, send: Send) -> None:
    """Send an error as text, read the rest of the request for at most 2 s, and close.

    Otherwise the kernel would reset the connection, and the client's kernel drop the response.
    """
    hint = f"{error.hint}\n" if error.hint else ""
    text = f"huai: {error.message}\n{hint}".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(text)),
        (b"connection", b"close"),
        *((name.lower().encode(), value.encode()) for name, value in error.headers.items()),
    ]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": text, "more_body": True})
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_SECONDS):
            while not inbox.ended:
                await inbox()
    await send({"type": "http.response.body"})
