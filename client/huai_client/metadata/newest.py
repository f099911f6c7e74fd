"""The newest commit of an upstream: one small request.

Any git server that speaks the smart HTTP protocol will do (git's own documentation:
gitprotocol-http); the plain advertisement of version 0 is what every one of them can send.
Other transports are left to `repository`, the fetch itself to `git`.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from huai_client.deadline import NEVER, Deadline
from huai_client.metadata.http import (
    TIMEOUT_SECONDS,
    MetadataUrl,
    NotServedError,
    Question,
    UpstreamError,
    ask,
)
from huai_client.metadata.http_line import Line
from huai_schema.errors import FormatError
from huai_schema.git.objects import BRANCH
from huai_schema.git.pktline import FLUSH, split

_ANSWER_BYTES = 1 << 20
_ADVERT = "info/refs?service=git-upload-pack"
_REF = re.compile(rb"^([0-9a-f]{40}) ([^\0\n]+)")


class Newest(NamedTuple):
    """The newest commit of an upstream."""

    commit: str
    """Its hex id."""
    found: MetadataUrl
    """Where the upstream is, after redirections."""
    clock: float | None = None
    """What its clock said, seconds since the epoch; None: it did not say."""
    line: Line | None = None
    """The connection on which it said so, if that stays open for another question."""


def newest_commit(
    metadata: MetadataUrl, *, timeout: float = TIMEOUT_SECONDS, deadline: Deadline = NEVER
) -> str:
    """The hex id of the commit that the branch points to; `UpstreamError` if there is none."""
    return find_newest(metadata, timeout=timeout, deadline=deadline).commit


def find_newest(
    metadata: MetadataUrl, *, timeout: float = TIMEOUT_SECONDS, deadline: Deadline = NEVER
) -> Newest:
    """The commit that the branch points to, and where to fetch it.

    A `timeout` (s) that is longer than what suits so small a question is not made use of.
    """
    timeout = min(timeout, TIMEOUT_SECONDS)
    question = Question(_ADVERT, stay=True)
    with ask(metadata, question, timeout=timeout, deadline=deadline) as answer:
        body, url, clock = answer.whole(_ANSWER_BYTES), answer.url, answer.clock
        line = answer.release()
    found = metadata
    if url != f"{str(metadata).rstrip('/')}/{_ADVERT}":
        found = MetadataUrl(url.removesuffix(f"/{_ADVERT}"))
    return Newest(decode_advert(body, str(metadata)), found, clock, line)


def decode_advert(body: bytes, metadata: str) -> str:
    """The commit that the branch names in an advertisement of refs; pure."""
    packets = _packets(body)
    try:
        if not next(packets, b"").startswith(b"# service=git-upload-pack"):
            raise _no_repository(metadata)
    except FormatError:
        raise _no_repository(metadata) from None
    try:
        for packet in packets:
            found = _REF.match(packet)
            if found and found[2] == BRANCH.encode():
                return found[1].decode()
    except FormatError as error:
        raise UpstreamError(
            f"{metadata}: the answer ends in the middle", hint="try again later"
        ) from error
    raise NotServedError(
        f"{metadata}: nothing is committed there yet", hint="run huai-server commit on the upstream"
    )


def _no_repository(metadata: str) -> "UpstreamError":
    return UpstreamError(
        f"{metadata}: this is no git repository served over HTTP", hint="look at the URL"
    )


def _packets(body: bytes) -> Iterator[bytes]:
    """The payloads up to the second flush packet (gitprotocol-http(5), "Smart Clients").

    `FormatError` if the body ends before that.
    """
    flushes = 0
    for packet in split(body):
        if isinstance(packet, bytes):
            yield packet
        elif packet == FLUSH:
            flushes += 1
            if flushes == 2:
                return
    raise FormatError("an answer that ends before its second flush packet")
