"""Checks the target of a redirect.  Pure."""

import re
from urllib.parse import quote, urljoin, urlsplit

from huai_program.urls import service_of, split_url, without_login

_SAFE = "!#$%&'()*+,/:;=?@[]~"
_BYTES_MAX = 16_384
_CONTROL = re.compile(r"[\x00-\x20\x7f]")
REDIRECT_STATUSES = (301, 302, 303, 307, 308)
"""The statuses of a redirect."""
REDIRECTIONS_MOST = 5
"""Redirects in a row."""


class RedirectionError(Exception):
    """A redirect that is not followed; its text is the reason."""


def redirect_target(address: str, location: str) -> str:
    """Return the target of a redirect from `address`, without a login.

    Raises `RedirectionError` for a target that is not HTTP, and for one from https to http.
    """
    if not location or len(location) > _BYTES_MAX:
        raise RedirectionError("a redirect without a target")
    try:
        target = quote(urljoin(address, location.strip(" \t")), safe=_SAFE)
        split = split_url(target)
        is_valid = bool(split.hostname) and bool(service_of(target))
    except ValueError:
        is_valid = False
        target, split = "", urlsplit("")
    if not is_valid or _CONTROL.search(target):
        raise RedirectionError("a redirect to a malformed URL")
    if split.scheme not in ("http", "https"):
        raise RedirectionError(f"a redirect to {split.scheme[:20]}, which is not HTTP")
    if address.startswith("https:") and split.scheme != "https":
        raise RedirectionError("a redirect from https to http")
    return without_login(target)
