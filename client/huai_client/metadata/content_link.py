"""Finds the content of a module at the server of its metadata, by a Link header (FORMAT.md)."""

import re
from contextlib import suppress

from huai_client.metadata.curl.head import RedirectionError, redirect_target
from huai_client.metadata.failover import Failover
from huai_client.metadata.http import MetadataUrl, NotServedError, UpstreamError, is_http
from huai_client.metadata.static_fetch import Files
from huai_client.run.options import Deadline
from huai_schema.codec.static_files import FOLDER, HEAD
from huai_schema.codec.web_folder import CONTENT_RELATION
from huai_schema.errors import FormatError

_LINK = re.compile(rf'<([^<>]*)>; rel="{CONTENT_RELATION}"')


def content_url(file_url: str, link: str) -> str:
    """Return the URL of all content in `link`, the Link header of the file at `file_url`.

    Empty if it is missing or malformed.
    """
    match = _LINK.search(link)
    with suppress(RedirectionError):
        return redirect_target(file_url, match[1]) if match else ""
    return ""


def find_content_url(metadata: Failover, *, timeout: float, deadline: Deadline) -> str:
    """Request the URL of all content from the server of the metadata.

    Empty if it states none, or does not respond; raises `TimeUpError` at the deadline.  `timeout`:
    see `send`.
    """
    files = Files(timeout=timeout, deadline=deadline)

    def fetch(url: MetadataUrl) -> str | None:
        """Return the URL in the Link header; None without one, or without static files by HTTP."""
        if not is_http(url.url):
            return None
        try:
            with files.get(url, f"{FOLDER}/{HEAD}") as response:
                return content_url(response.url, response.link) or None
        except NotServedError:
            return None

    try:
        return metadata.first_found(fetch) or ""
    except (UpstreamError, FormatError):
        return ""
