"""The head of an upstream's static files: one small request, and a smaller one if nothing changed.

Its content is not trusted: see `static_fetch`.
"""

from typing import TYPE_CHECKING, NamedTuple

from huai_client.metadata.http import MetadataUrl, NotServedError, Request, UnchangedError, send
from huai_client.metadata.known_heads import KnownHead
from huai_client.run.deadline import Deadline

if TYPE_CHECKING:
    from huai_schema.codec.static_files import Static

_ADDRESS = "static/head"


class StaticHead(NamedTuple):
    """The decoded head of static files."""

    commit: str
    url: MetadataUrl
    """The URL of the upstream, after redirects."""
    clock: float | None
    static: "Static | None"
    """None if nothing changed."""
    etag: str = ""


def fetch_static_head(
    metadata: MetadataUrl, remembered: KnownHead | None, *, timeout: float, deadline: Deadline
) -> StaticHead:
    """Request the head; with `remembered` the response may be that it has not changed.

    `UpstreamError` for a page that is not a head, `FormatError` for a head that is malformed.
    """
    request = Request(_ADDRESS, etag=remembered.detail if remembered else "")
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
            return StaticHead(commit, url, response.clock, static, response.etag)
    except UnchangedError as error:
        if remembered is None:
            raise
        return StaticHead(remembered.commit, metadata, error.clock, None)
