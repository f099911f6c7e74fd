"""Lets pages of other sites read what everybody may: the API and its events (CORS).

Rule: an answer to who shows a token or a certificate is never for other sites.  A request with a
token asks for leave first (a preflight), which no address here gives.
"""

from collections.abc import Mapping
from typing import Any

from huai_server.http.access import is_anybody
from huai_server.http.asgi.errors import READ_METHODS
from huai_server.http.asgi.responder import Send

_PREFIXES = ("/api/v1/", "/openapi.json")
_HEADERS = [(b"access-control-allow-origin", b"*"), (b"access-control-expose-headers", b"ETag")]


def for_any_site(scope: Mapping[str, Any], send: Send) -> Send:
    """By what an answer is sent: with leave for other sites, where it is for everybody."""
    readable = scope["method"] in READ_METHODS and scope["path"].startswith(_PREFIXES)
    if not readable or not is_anybody(scope):
        return send

    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *_HEADERS]}
        await send(message)

    return sending
