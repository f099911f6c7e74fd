"""Which answers are compressed, and what they say of themselves."""

import asyncio
import gzip
from typing import Any

import pytest
from starlette.datastructures import Headers

from huai_server.http.asgi.compressed import Compressed, takes_gzip

LARGE = b"line of a page\n" * 200


@pytest.mark.parametrize(
    ("accepted", "taken"),
    [
        ([], False),
        ([b"gzip"], True),
        ([b"br, GZIP;q=0.5"], True),
        ([b"br", b"deflate, gzip"], True),
        ([b"gzip;q=0"], False),
        ([b"gzip;q=x"], False),
        ([b"x-gzip, *"], False),
        ([b"\xff\xff"], False),
    ],
)
def test_gzip_is_for_those_who_name_it(accepted: list[bytes], *, taken: bool) -> None:
    headers = [(b"host", b"gzip"), *((b"accept-encoding", value) for value in accepted)]
    assert takes_gzip(headers) == taken


@pytest.mark.parametrize(
    ("media", "body", "etag", "coded", "shown"),
    [
        ("text/html", LARGE, 'W/"1"', True, 'W/"1"'),
        ("application/json", LARGE, '"1"', True, 'W/"1"'),
        ("text/css", LARGE, None, True, None),
        ("text/html", b"short", '"1"', False, '"1"'),
        ("text/event-stream", LARGE, '"1"', False, '"1"'),
    ],
)
def test_an_answer(media: str, body: bytes, etag: str | None, *, coded: bool, shown: str) -> None:
    asked = [(b"accept-encoding", b"gzip")]
    headers, sent = answer(media, body, etag, asked)
    assert (headers.get("content-encoding") == "gzip") == coded
    assert (gzip.decompress(sent) if coded else sent) == body
    assert headers["content-length"] == str(len(sent))
    assert headers.get("etag") == shown
    plain, sent = answer(media, body, etag, [(b"accept-encoding", b"gzip;q=0")])
    assert (sent, plain.get("etag")) == (body, etag)
    assert "content-encoding" not in plain
    assert plain.get("vary") == headers.get("vary") == ("Accept-Encoding" if coded else None)


def answer(
    media: str, body: bytes, etag: str | None, asked: list[tuple[bytes, bytes]]
) -> tuple[Headers, bytes]:
    """A sent response."""
    messages: list[Any] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        headers = [(b"content-type", media.encode()), (b"content-length", b"%d" % len(body))]
        headers += [(b"etag", etag.encode())] if etag else []
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def send(message: Any) -> None:
        messages.append(message)
        await asyncio.sleep(0)

    async def receive() -> Any:
        await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    asyncio.run(Compressed(app)({"type": "http", "headers": asked}, receive, send))
    return Headers(raw=messages[0]["headers"]), b"".join(each["body"] for each in messages[1:])
