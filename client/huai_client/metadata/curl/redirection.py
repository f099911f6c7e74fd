"""Judges the target of a redirection.  Pure."""

import re
from urllib.parse import quote, urljoin, urlsplit

from huai_program.urls import service_of, split_url, without_login

_SAFE = "!#$%&'()*+,/:;=?@[]~"
_BYTES_MAX = 16_384
_CONTROL = re.compile(r"[\x00-\x20\x7f]")
ELSEWHERE = (301, 302, 303, 307, 308)
"""The statuses of a redirection."""
REDIRECTIONS_MOST = 5
"""In a row."""


class RedirectionError(Exception):
    """A redirection that is not followed; its text says why."""


def redirected(address: str, location: str) -> str:
    """Return where the response of `address` leads, without a login.

    Raises `RedirectionError` for anything but HTTP, and for a way from https to http.
    """
    if not location or len(location) > _BYTES_MAX:
        raise RedirectionError("a redirection to nowhere")
    try:
        target = quote(urljoin(address, location.strip(" \t")), safe=_SAFE)
        split = split_url(target)
        known = bool(split.hostname) and bool(service_of(target))
    except ValueError:
        known = False
        target, split = "", urlsplit("")
    if not known or _CONTROL.search(target):
        raise RedirectionError("a redirection to no address of HTTP")
    if split.scheme not in ("http", "https"):
        raise RedirectionError(f"a redirection to {split.scheme[:20]}, which is not HTTP")
    if address.startswith("https:") and split.scheme != "https":
        raise RedirectionError("a redirection from https to http")
    return without_login(target)
