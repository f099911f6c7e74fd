"""What an upstream tells of new commits to whoever stays connected (PUSH.md, "Events").

Any bytes give commits or an `UpstreamError`: a message and its lines have a bound.
Rule: each message, be it a heartbeat, has to be complete within `SILENCE_SECONDS` of the one
before.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated
from urllib.parse import urlencode

import msgspec
from msgspec import Meta

from huai_client.metadata.http import (
    MetadataUrl,
    NotServedError,
    Question,
    UpstreamError,
    ask,
)

SILENCE_SECONDS = 40.0
"""Two and a half heartbeats of a server."""

_PATH = "api/v1/events"
_QUERY_BYTES = 6 << 10
"""A longer one is left out: what is told of other modules is passed over."""
_TYPE = "text/event-stream"
_PIECE = 8 << 10
_MESSAGE_BYTES = 64 << 10


class NoEventsError(UpstreamError):
    """The upstream is there, and tells of no commits: an older server, or files alone."""


class Told(msgspec.Struct, frozen=True):
    """The newest commit of a module, as the upstream tells of it."""

    module: str
    """As the upstream calls it."""
    serial: Annotated[int, Meta(ge=0)]
    commit: Annotated[str, Meta(pattern="^[0-9a-f]{40}$")]
    time: int
    """When it was committed, seconds since the epoch."""


def listen(base: MetadataUrl, modules: Iterable[str]) -> Iterator[Told | None]:
    """Stay connected, and yield each commit of `modules`; None: connected, or a heartbeat.

    Ends when the upstream ends it; every failure is an `UpstreamError`.
    """
    wanted = frozenset(modules)
    query = urlencode([("module", name) for name in sorted(wanted)])
    question = Question(f"{_PATH}?{query}" if len(query) <= _QUERY_BYTES else _PATH)
    try:
        with ask(base, question, timeout=SILENCE_SECONDS) as answer:
            if answer.content_type != _TYPE:
                raise NoEventsError(f"{base}: tells of no commits")
            yield None
            for name, data in messages(lambda: answer.read(_PIECE)):
                answer.renew()
                told = _commit(base, data) if name == b"commit" else None
                yield told if told is None or told.module in wanted else None
    except NotServedError:
        raise NoEventsError(f"{base}: tells of no commits") from None


def messages(read: Callable[[], bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Name and data of each message (HTML, section 9.2); both are empty for a comment."""
    held, name, data = b"", b"", b""
    while piece := read():
        *lines, held = (held + piece).split(b"\n")
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
        if len(held) + len(data) > _MESSAGE_BYTES:
            raise UpstreamError(f"an event of more than {_MESSAGE_BYTES} bytes")


def _commit(base: MetadataUrl, data: bytes) -> Told:
    try:
        return msgspec.json.decode(data, type=Told)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UpstreamError(f"{base}: an event that is not understood") from None
