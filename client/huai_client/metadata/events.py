"""A stream of new commits that the upstream sends to a connected client (PUSH.md, "Events").

Any bytes give commits or an `UpstreamError`: the length of a message and its lines is limited.
Rule: each message, a heartbeat included, must be complete within `SILENCE_SECONDS` of the previous
one.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated
from urllib.parse import urlencode

import msgspec
from msgspec import Meta

from huai_client.metadata.http import MetadataUrl, NotServedError, Request, UpstreamError, send

SILENCE_SECONDS = 40.0
"""Two and a half heartbeats of a server."""

_PATH = "api/v1/events"
_QUERY_BYTES = 6 << 10
"""A longer query is left out; events of other modules are then ignored."""
_TYPE = "text/event-stream"
_PIECE = 8 << 10
_MESSAGE_BYTES = 64 << 10


class NoEventsError(UpstreamError):
    """The upstream responds and sends no events: an older server, or static files alone."""


class CommitEvent(msgspec.Struct, frozen=True):
    """An event: the newest commit of a module."""

    module: str
    """Its name on the upstream."""
    serial: Annotated[int, Meta(ge=0)]
    commit: Annotated[str, Meta(pattern="^[0-9a-f]{40}$")]
    time: int
    """The time of the commit, seconds since the epoch."""


def listen(base: MetadataUrl, modules: Iterable[str]) -> Iterator[CommitEvent | None]:
    """Stay connected, and yield an event for each new commit of `modules`.

    `base` is the server's base URL.  Yields None once connected, and for each heartbeat or other
    message.  Ends when the upstream closes the stream.  Raises `NoEventsError` if it sends none,
    another `UpstreamError` for any other failure, `TlsError` for unusable certificates.
    """
    names = frozenset(modules)
    query = urlencode([("module", name) for name in sorted(names)])
    request = Request(f"{_PATH}?{query}" if len(query) <= _QUERY_BYTES else _PATH)
    try:
        with send(base, request, timeout=SILENCE_SECONDS) as response:
            if response.content_type != _TYPE:
                raise NoEventsError(f"{base}: sends no events")
            yield None
            for name, data in read_messages(lambda: response.read(_PIECE)):
                response.renew()
                event = _decode_event(base, data) if name == b"commit" else None
                yield event if event is None or event.module in names else None
    except NotServedError:
        raise NoEventsError(f"{base}: sends no events") from None


def read_messages(read: Callable[[], bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield name and data of each message (HTML, section 9.2); both are empty for a comment.

    `read` returns the next bytes, none at the end; an incomplete message is dropped then.  Raises
    `UpstreamError` for a message that is too long.
    """
    rest, name, data = b"", b"", b""
    while piece := read():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            field, _, value = line.removesuffix(b"\r").partition(b":")
            value = value.removeprefix(b" ")
            if field == b"event":
                name = value
            elif field == b"data":
                data = b"%s\n%s" % (data, value) if data else value
            elif not field and not value and not line.startswith(b":"):
                yield name, data
                name, data = b"", b""
        if len(rest) + len(data) > _MESSAGE_BYTES:
            raise UpstreamError(f"an event of more than {_MESSAGE_BYTES} bytes")


def _decode_event(base: MetadataUrl, data: bytes) -> CommitEvent:
    """Decode a JSON event; raises `UpstreamError` if it is malformed."""
    try:
        return msgspec.json.decode(data, type=CommitEvent)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UpstreamError(f"{base}: an event that cannot be decoded") from None
