"""Finds the newest commit of an upstream by one small request.

Any web server with static files will do, and any git server.  Over HTTP static files are requested
first; if there are none, and at every other URL, git is run.  `static_fetch` and `git_fetch` do the
fetch itself.
"""

from typing import TYPE_CHECKING

from msgspec import Struct

from huai_client.metadata.http import (
    TIMEOUT_SECONDS,
    ListedUrl,
    MetadataUrl,
    NotServedError,
    Request,
    UnchangedError,
    is_http,
    send,
)
from huai_client.metadata.known_heads import KnownHead, KnownHeads
from huai_client.run.options import NEVER, Deadline

if TYPE_CHECKING:
    from huai_schema.codec.static_files import Static


class Newest(Struct, frozen=True):
    """The newest commit of an upstream."""

    commit: str
    """Its hex id; empty if a list of the upstream has to be made to know it."""
    url: MetadataUrl
    """The URL of the upstream, after redirects."""
    clock: float | None = None
    """Seconds since the epoch by the upstream's clock; None if it did not send them."""
    static: "Static | None" = None
    """Its static files; None if there are none, or nothing has changed."""
    probed: str = ""
    """The state of a daemon's probes (`source.probe`), so that its list does not ask again."""


def find_newest(
    metadata: MetadataUrl,
    *,
    timeout: float = TIMEOUT_SECONDS,
    deadline: Deadline = NEVER,
    heads: KnownHeads | None = None,
    have: str | None = None,
) -> Newest:
    """Return the newest commit, and where to fetch it.

    Raises `UpstreamError` without one, `FormatError` for a malformed head of static files,
    `TimeUpError` at the deadline.  `timeout` (s) is at most `TIMEOUT_SECONDS`.  `heads` remembers
    the head; if it is that of the commit `have`, the response may be that nothing changed.
    """
    timeout = min(timeout, TIMEOUT_SECONDS)
    if isinstance(metadata, ListedUrl):
        from huai_client.metadata.source.fetch import poll_listed  # few upstreams need it

        folder, is_poll = heads.folder if heads else None, have is not None
        result = poll_listed(folder, metadata, timeout, deadline, is_poll=is_poll)
        return Newest(result.commit, metadata, probed=result.probed)
    if not is_http(metadata.url):
        return _newest_by_git(metadata, timeout, deadline)
    remembered = heads.get(metadata.address) if heads else None
    try:
        newest, etag = _newest_by_static_head(
            metadata,
            remembered if remembered and remembered.commit == have else None,
            timeout=timeout,
            deadline=deadline,
        )
    except NotServedError as missing:
        try:
            return _newest_by_git(metadata, timeout, deadline)
        except NotServedError:
            raise missing from None
    if heads and newest.static:
        heads.set(metadata.address, KnownHead(newest.commit, etag))
    return newest


def _newest_by_git(metadata: MetadataUrl, timeout: float, deadline: Deadline) -> Newest:
    """Return the upstream's newest commit, by `git ls-remote`."""
    from huai_client.metadata.git.program import GitProgram  # few upstreams need it

    git = GitProgram(metadata, timeout=timeout, deadline=deadline)
    return Newest(git.newest(), metadata)


_ADDRESS = "static/head"


def _newest_by_static_head(
    metadata: MetadataUrl, remembered: KnownHead | None, *, timeout: float, deadline: Deadline
) -> tuple[Newest, str]:
    """Request the head of static files; return the newest commit, and the head's ETag.

    With `remembered` the response may be that it has not changed: the ETag is empty then.  Raises
    `NotServedError` without a head, or for another page, `FormatError` for a malformed head.
    """
    request = Request(_ADDRESS, validator=remembered.detail if remembered else "")
    try:
        with send(metadata, request, timeout=timeout, deadline=deadline) as response:
            from huai_schema.codec.static_files import MAGIC, STATIC_BYTES, Static

            body = response.read_all(STATIC_BYTES + 1)
            if not body.startswith(MAGIC):
                raise NotServedError(f"{metadata}/{_ADDRESS}: this is not a head of static files")
            static = Static.decode(body, f"{metadata}/{_ADDRESS}")
            url = metadata
            if response.url != f"{metadata.address.rstrip('/')}/{_ADDRESS}":
                url = metadata.redirected(response.url.removesuffix(f"/{_ADDRESS}"))
            commit = static.commits[static.newest]
            return Newest(commit, url, response.clock, static), response.etag
    except UnchangedError as error:
        if remembered is None:
            raise
        return Newest(remembered.commit, metadata, error.clock), ""
