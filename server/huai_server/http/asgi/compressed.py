"""Pages, JSON and what pages load, compressed by gzip for those who take it.

Events are never compressed, and git and content do not pass here.  Rule: a compressed answer has a
weak ETag or none, since it is not byte for byte what the others get.
"""

from collections.abc import Iterable
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp

from huai_server.http.asgi.accept import weights
from huai_server.http.asgi.body import Receive
from huai_server.http.asgi.responder import Send

_LEAST = 1024
_LEVEL = 5
_ENCODING = b"accept-encoding"


class Compressed:
    """An ASGI application whose answers are compressed."""

    def __init__(self, app: ASGIApp) -> None:
        """`app` compresses nothing itself."""
        self._app = GZipMiddleware(app, _LEAST, _LEVEL)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """One request."""
        # Starlette looks for the word alone, and passes over "gzip;q=0".
        others = [each for each in scope["headers"] if each[0] != _ENCODING]
        taken = [(_ENCODING, b"gzip")] if takes_gzip(scope["headers"]) else []

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                _weaken(MutableHeaders(raw=message["headers"]))
            await send(message)

        await self._app({**scope, "headers": [*others, *taken]}, receive, sending)


def takes_gzip(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """True if a request accepts gzip by name: what it means by `*` it may not know."""
    return any(
        coding == "gzip" and weight > 0
        for name, value in headers
        if name == _ENCODING
        for coding, weight in weights(value.decode("latin-1"))
    )


def _weaken(headers: MutableHeaders) -> None:
    etag = headers.get("etag")
    if etag is not None and "content-encoding" in headers and not etag.startswith("W/"):
        headers["etag"] = f"W/{etag}"
