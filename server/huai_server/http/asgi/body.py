"""Reading a request body: inflated, limited in bytes and seconds, and no further than needed.

The first part is held in memory (most requests are a few hundred bytes and end there); the rest is
streamed.  A gzip stream is inflated in slices, so a bomb takes the memory of one slice.  Rule: no
byte is kept before it is counted.
"""

import asyncio
import zlib
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    MutableMapping,
)
from typing import Any, TypeVar

from huai_server.http.asgi.errors import ClientGoneError, HttpError

T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

HEAD_BYTES = 64 << 10
BEGIN_SECONDS = 20.0
"""A body must arrive within so many seconds, plus one for each `PACE` bytes of it."""
PACE = 4096
"""Bytes a second."""
_PLAIN = (b"", b"identity")
_GZIP = (b"gzip", b"x-gzip")
_GZIP_WBITS = 16 + zlib.MAX_WBITS
_SLICE = 64 << 10


class Inbox:
    """An ASGI `receive` that records the end of the request."""

    __slots__ = ("_receive", "ended")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.ended = False

    async def __call__(self) -> MutableMapping[str, Any]:
        """Return the next message; sets `ended` with the last part of the body, or a hang-up."""
        message = await self._receive()
        if not message.get("more_body", False):
            self.ended = True
        return message


class Body:
    """The body of a request.  Call `open` once, then `rest` once unless `complete`."""

    def __init__(self, receive: Receive, encoding: bytes, limit: int, timeout: float) -> None:
        """`limit` counts inflated bytes; `timeout` (s) bounds the whole body.

        Raises status 415 unless `encoding`, the Content-Encoding, is gzip, identity or empty.
        """
        if encoding not in _PLAIN + _GZIP:
            raise HttpError(415, "unknown content encoding", hint="send it plain or gzip")
        self._receive = receive
        self._inflater = Inflater() if encoding in _GZIP else None
        self._limit = limit
        self._timeout = timeout
        self._size = 0
        self._over = asyncio.Event()
        self._chunks = self._read()
        self.head = b""
        self.complete = False

    async def open(self) -> None:
        """Read the first part of the body into `head`; `complete` is true if that is all of it.

        Raises status 400 for damaged gzip, 408 if it is late, 413 if it is too large, and
        `ClientGoneError`.
        """
        parts: list[bytes] = []
        size = 0
        async for chunk in self._chunks:
            parts.append(chunk)
            size += len(chunk)
            if size >= HEAD_BYTES:
                break
        else:
            self.complete = True
        self.head = b"".join(parts)

    def rest(self) -> AsyncIterator[bytes]:
        """Return an iterator over the inflated parts after `head`, which raises as `open` does."""
        return self._chunks

    async def wait_for_disconnect(self) -> None:
        """Wait until the body is read and the client has hung up, then raise `ClientGoneError`."""
        await self._over.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        raise ClientGoneError("the client closed the connection")

    async def _read(self) -> AsyncIterator[bytes]:
        """Yield the inflated parts; raise `HttpError` above a limit of bytes or time.

        Raises `ClientGoneError` if the client closes the connection before the end.
        """
        began, received = asyncio.get_running_loop().time(), 0
        try:
            more = True
            while more:
                patience = min(self._timeout, BEGIN_SECONDS + received / PACE)
                async with asyncio.timeout_at(began + patience):
                    message = await self._receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError("the client closed the connection inside its request")
                more = message.get("more_body", False)
                data = message.get("body", b"")
                received += len(data)
                for piece in (data,) if self._inflater is None else self._inflater.slices(data):
                    yield self._count(piece)
            if self._inflater is not None:
                self._inflater.finish()
        except TimeoutError:
            raise HttpError(408, "the request body did not arrive in time") from None
        finally:
            self._over.set()

    def _count(self, chunk: bytes) -> bytes:
        """Count the bytes of `chunk`, and return it; `HttpError` if the body exceeds its limit."""
        self._size += len(chunk)
        if self._size > self._limit:
            raise HttpError(413, f"the request body exceeds {self._limit} bytes")
        return chunk


class Inflater:
    """One gzip stream (RFC 1952) with one member, as git sends it."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(_GZIP_WBITS)

    def slices(self, data: bytes) -> Iterator[bytes]:
        """Inflate a part of the stream, in slices; status 400 for damage, or data after the end."""
        while True:
            if self._stream.eof and data:
                raise HttpError(400, "there is data after the gzip stream of the request")
            try:
                piece = self._stream.decompress(data, _SLICE)
            except zlib.error:
                raise HttpError(400, "the gzip stream of the request is damaged") from None
            data = self._stream.unconsumed_tail or self._stream.unused_data
            if piece:
                yield piece
            elif not data:
                return

    def finish(self) -> None:
        """Raise status 400 if the stream is incomplete; to be called after the last part."""
        if not self._stream.eof:
            raise HttpError(400, "the gzip stream of the request ends too early")


async def race(work: Coroutine[Any, Any, T], *guards: Coroutine[Any, Any, None]) -> T:
    """Return the result of `work`; the error of a guard cancels `work`, and is raised.

    A guard that ends without an error changes nothing.  Guards are cancelled when `work` ends;
    returns when all have ended.
    """
    main = asyncio.ensure_future(work)
    watchers = [asyncio.ensure_future(guard) for guard in guards]
    pending: set[asyncio.Future[Any]] = {main, *watchers}
    try:
        while not main.done():
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for watcher in done & set(watchers):
                if not main.done():
                    watcher.result()
        return main.result()
    finally:
        for task in (main, *watchers):
            task.cancel()
        await asyncio.gather(main, *watchers, return_exceptions=True)
