"""One answer with a file: all of it, some of its ranges, or nothing because of a condition.

The framework's `FileResponse` is not used: it opens a path, which may be another file by then, does
not see that a file changes, and refuses ranges of which only some are in the file.
Rule: the length of an answer is told first, so a file that changes drops the connection.
"""

import secrets
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import Executor
from email.utils import formatdate
from functools import partial

from huai_server.http.asgi.conditions import FAILED, NOT_MODIFIED, Validators, judge, permits_range
from huai_server.http.asgi.errors import HttpError
from huai_server.http.asgi.responder import Headers, Send
from huai_server.http.asgi.threads import in_thread
from huai_server.http.content.files import OpenFile
from huai_server.http.content.ranges import Span, spans_of

BLOCK_BYTES = 256 << 10
"""Read and sent at a time: what a slow reader holds in memory."""
_TYPE = b"application/octet-stream"
_SECOND = 1_000_000_000
_ALWAYS: Headers = [
    (b"accept-ranges", b"bytes"),
    # A path has other content after the next commit: caches have to ask.
    (b"cache-control", b"no-cache"),
    # Whatever a mirror holds, no browser is to run it as a page of this server.
    (b"x-content-type-options", b"nosniff"),
]


class FileAnswer:
    """What a GET or HEAD gets of an open file; `size` bytes are its body."""

    def __init__(self, file: OpenFile, method: str, asked: dict[str, str]) -> None:
        """`asked` are the headers of the request; an `HttpError` says that they cannot be met."""
        self._file = file
        validators = _validators(file)
        self._status = judge(asked, validators) or 200
        if self._status == FAILED:
            raise HttpError(FAILED, "the file is not the one that was meant")
        self._headers: Headers = [*_ALWAYS, *_named(validators)]
        self._parts: list[bytes | Span] = []
        self.size = 0
        if self._status != NOT_MODIFIED:
            self._choose(_asked_spans(file, method, asked, validators))
        self._is_head = method == "HEAD"

    def _choose(self, spans: Sequence[Span] | None) -> None:
        if spans is None:
            self._parts, kind = [Span(0, self._file.size)], _TYPE
        else:
            self._status = 206
            self._parts, kind = list(spans), _TYPE
            if len(spans) == 1:
                self._headers.append((b"content-range", _place(spans[0], self._file.size)))
            else:
                boundary = secrets.token_hex(16).encode()
                self._parts = list(_multipart(spans, self._file.size, boundary))
                kind = b"multipart/byteranges; boundary=" + boundary
        self.size = sum(
            len(part) if isinstance(part, bytes) else part.end - part.start for part in self._parts
        )
        self._headers += [(b"content-type", kind), (b"content-length", b"%d" % self.size)]

    async def send(self, send: Send, pool: Executor) -> None:
        """Send it, at the pace of its reader; files are read by `pool`."""
        start = {"type": "http.response.start", "status": self._status, "headers": self._headers}
        await send(start)
        if not self._is_head:
            async for data in self._blocks(pool):
                await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body"})

    async def _blocks(self, pool: Executor) -> AsyncIterator[bytes]:
        for part in self._parts:
            if isinstance(part, bytes):
                yield part
                continue
            if part.end <= len(self._file.beginning):
                yield self._file.beginning[part.start : part.end]
                continue
            for at in range(part.start, part.end, BLOCK_BYTES):
                size = min(BLOCK_BYTES, part.end - at)
                yield await in_thread(partial(self._file.read, at, size), pool)


def _validators(file: OpenFile) -> Validators:
    seconds = file.mtime // _SECOND
    # A server must not name a time to come (RFC 9110, section 8.8.2.1).
    return Validators(file.etag, seconds if 0 <= seconds <= time.time() else None)


def _named(validators: Validators) -> Headers:
    headers: Headers = [(b"etag", validators.etag.encode())]
    if validators.modified is not None:
        date = formatdate(validators.modified, usegmt=True)
        headers.append((b"last-modified", date.encode()))
    return headers


def _asked_spans(
    file: OpenFile, method: str, asked: dict[str, str], validators: Validators
) -> list[Span] | None:
    """The ranges to send; None: the whole file."""
    header = asked.get("range")
    if header is None or method != "GET" or not permits_range(asked, validators):
        return None
    spans = spans_of(header, file.size)
    if spans is not None and not spans:
        raise HttpError(
            416,
            "the file has none of these ranges, or they are too many",
            headers={"Content-Range": f"bytes */{file.size}"},
        )
    return spans


def _place(span: Span, size: int) -> bytes:
    return b"bytes %d-%d/%d" % (span.start, span.end - 1, size)


def _multipart(spans: Sequence[Span], size: int, boundary: bytes) -> Iterator[bytes | Span]:
    """The parts of RFC 9110, section 14.6."""
    opening, between = b"--" + boundary, b""
    for span in spans:
        place = b"Content-Range: " + _place(span, size)
        head = (opening, b"Content-Type: " + _TYPE, place, b"", b"")
        yield between + b"\r\n".join(head)
        yield span
        between = b"\r\n"
    yield between + opening + b"--\r\n"
