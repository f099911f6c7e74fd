"""The newest commit of an upstream: one small request.

Any web server with static files will do, and any git server that speaks the smart HTTP protocol
(git's own documentation: gitprotocol-http); the plain advertisement of version 0 is what every one
of them can send.  One that is not known is asked by git's protocol; if it does not speak that, or
says that it has static files, for these, and from then on for these alone.
Other transports are left to `repository`, the fetch itself to `git` and `static_fetch`.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from huai_client.metadata.http import (
    TIMEOUT_SECONDS,
    MetadataUrl,
    NotServedError,
    Question,
    UpstreamDownError,
    UpstreamError,
    ask,
)
from huai_client.metadata.known_heads import KnownHead, KnownHeads
from huai_client.run.deadline import NEVER, Deadline
from huai_schema.errors import FormatError
from huai_schema.git.objects import BRANCH
from huai_schema.git.pktline import FLUSH, split

if TYPE_CHECKING:
    from huai_schema.codec.static_files import Static

_ANSWER_BYTES = 1 << 20
_CONTENT_URLS = 16
"""As many as a descriptor may name."""
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
    static: "Static | None" = None
    """What its static files are, if that was asked and there are any."""
    content_urls: tuple[str, ...] = ()
    """Where a relay has the content; empty: where the commit says."""


def newest_commit(
    metadata: MetadataUrl,
    *,
    timeout: float = TIMEOUT_SECONDS,
    deadline: Deadline = NEVER,
    heads: KnownHeads | None = None,
) -> str:
    """The hex id of the newest commit; `UpstreamError` if there is none."""
    return find_newest(metadata, timeout=timeout, deadline=deadline, heads=heads).commit


def find_newest(
    metadata: MetadataUrl,
    *,
    timeout: float = TIMEOUT_SECONDS,
    deadline: Deadline = NEVER,
    heads: KnownHeads | None = None,
    have: str | None = None,
) -> Newest:
    """The newest commit, and where to fetch it.

    `FormatError` for a malformed head of static files where git's protocol is not spoken.
    A `timeout` (s) that is longer than what suits so small a question is not made use of.
    `heads` knows who has static files; if it is the commit `have` that they had, no more may be
    said than that it still is.
    """
    asking = _Asking(metadata, min(timeout, TIMEOUT_SECONDS), deadline, heads, [])
    known = heads.get(metadata.address) if heads else None
    if known is not None:
        found = asking.by_files(known if known.commit == have else None)
        if found is not None:
            return found
        if heads:
            heads.forget(metadata.address)
    try:
        newest, offers_files = _by_git(metadata, asking.timeout, deadline)
    except UpstreamDownError:
        raise
    except UpstreamError as error:
        found = asking.by_files(None)
        if found is None:
            raise next(iter(asking.malformed), error) from None
        return found
    return (asking.by_files(None) if offers_files else None) or newest


class _Asking(NamedTuple):
    metadata: MetadataUrl
    timeout: float
    deadline: Deadline
    heads: KnownHeads | None
    malformed: list[FormatError]
    """The reason why the head of the static files is malformed."""

    def by_files(self, known: KnownHead | None) -> Newest | None:
        """Return the newest commit by the static files; None if their head is absent or bad."""
        from huai_client.metadata.static_head import hear_head

        metadata, heads = self.metadata, self.heads
        try:
            heard = hear_head(metadata, known, timeout=self.timeout, deadline=self.deadline)
        except UpstreamDownError:
            raise
        except UpstreamError:
            return None
        except FormatError as error:
            self.malformed.append(error)
            return None
        if heads and heard.static:
            heads.set(metadata.address, KnownHead(heard.commit, heard.etag))
        urls = heard.static.content_urls if heard.static else ()
        return Newest(heard.commit, heard.found, heard.clock, heard.static, urls)


def _by_git(metadata: MetadataUrl, timeout: float, deadline: Deadline) -> tuple[Newest, bool]:
    """The commit that the branch points to, and whether there are static files as well."""
    question = Question(_ADVERT)
    with ask(metadata, question, timeout=timeout, deadline=deadline) as answer:
        body, url, clock = answer.whole(_ANSWER_BYTES), answer.url, answer.clock
        offers_files = answer.offers_files
        urls = tuple(answer.content_urls.split()[:_CONTENT_URLS])
    found = metadata
    if url != f"{metadata.address.rstrip('/')}/{_ADVERT}":
        found = metadata.redirected(url.removesuffix(f"/{_ADVERT}"))
    commit = decode_advert(body, str(metadata))
    return Newest(commit, found, clock, content_urls=urls), offers_files


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
        f"{metadata}: this is not a git repository served over HTTP", hint="look at the URL"
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
