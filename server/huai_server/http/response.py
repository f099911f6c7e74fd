"""Answers in ASGI messages: plain ones, and those of git, whole or in pieces.

Rule: nothing is sent that waits for ever; a client that reads nothing for `patience`
seconds is gone.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from huai_server.http.body import Inbox
from huai_server.http.refusal import ClientGoneError, RefusedError

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_SLICE = 256 << 10
_LINGER_SECONDS = 2.0
_NO_CACHE: Headers = [
    (b"expires", b"Fri, 01 Jan 1980 00:00:00 GMT"),
    (b"pragma", b"no-cache"),
    (b"cache-control", b"no-cache, max-age=0, must-revalidate"),
]


class Responder:
    """One answer of git on its way out: `whole`, or `piece` any number of times and `end`."""

    __slots__ = ("_content_type", "_prefix", "_send", "patience", "started")

    def __init__(self, send: Send, content_type: bytes, prefix: bytes, patience: float) -> None:
        """`prefix` goes before whatever git says; `patience` in s."""
        self._send = send
        self._content_type = content_type
        self._prefix = prefix
        self.patience = patience
        self.started = False

    async def whole(self, body: bytes) -> None:
        """Answer with all of `body` and its length."""
        body = self._prefix + body if self._prefix else body
        self._prefix = b""
        await self._start([(b"content-length", b"%d" % len(body))])
        if len(body) <= _SLICE:
            await self._send({"type": "http.response.body", "body": body})
            return
        for at in range(0, len(body), _SLICE):
            await self.piece(body[at : at + _SLICE])
        await self.end()

    async def piece(self, data: bytes) -> None:
        """Send some of an answer of unknown length, at the pace of its reader."""
        if not self.started:
            await self._start([])
        if self._prefix:
            data, self._prefix = self._prefix + data, b""
        try:
            async with asyncio.timeout(self.patience):
                await self._send({"type": "http.response.body", "body": data, "more_body": True})
        except TimeoutError:
            raise ClientGoneError("the client stopped reading") from None

    async def end(self) -> None:
        """Nothing more comes."""
        try:
            async with asyncio.timeout(self.patience):
                await self._send({"type": "http.response.body"})
        except TimeoutError:
            raise ClientGoneError("the client stopped reading") from None

    async def _start(self, more: Headers) -> None:
        self.started = True
        headers = [(b"content-type", self._content_type), *_NO_CACHE, *more]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})


async def refuse(error: RefusedError, inbox: Inbox, send: Send) -> None:
    """Answer with the error as text, and close; a body still coming in is drained for a moment.

    Without that the client's kernel drops our answer when ours resets the connection.
    """
    hint = f"{error.hint}\n" if error.hint else ""
    text = f"huai: {error.message}\n{hint}".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(text)),
        (b"connection", b"close"),
    ]
    if error.retry_after:
        headers.append((b"retry-after", b"%d" % error.retry_after))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": text, "more_body": True})
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_SECONDS):
            while not inbox.ended:
                await inbox()
    await send({"type": "http.response.body"})
