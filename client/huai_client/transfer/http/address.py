"""Addresses: a path below a content URL, and where a redirection may lead.

Pure.
"""

import re
from urllib.parse import quote, urljoin, urlsplit

from huai_program.urls import service_of, split_url
from huai_schema.paths import RelPath

_SAFE = "!$&'()*+,;=:@/"
"""Beside letters, digits and `-._~`: what a path may hold as it is (RFC 3986, `pchar`)."""
_SAFE_REDIRECTED = "!#$%&'()*+,/:;=?@[]~"
_BYTES_MAX = 16_384
_CONTROL = re.compile(r"[\x00-\x20\x7f]")


class RedirectionError(Exception):
    """A redirection that is not followed; its text says why.  Never leaves the package."""


def address_of(base: str, path: RelPath) -> str:
    """The address of `path` below `base`, which ends with a slash."""
    return base + quote(path, safe=_SAFE)


def redirected(address: str, location: str) -> str:
    """Where the answer of `address` leads; raises `RedirectionError` if not to follow.

    To HTTP alone, and never from https to http.
    """
    if not location or len(location) > _BYTES_MAX:
        raise RedirectionError("a redirection to nowhere")
    try:
        target = quote(urljoin(address, location.strip(" \t")), safe=_SAFE_REDIRECTED)
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
    if split.username is not None:
        raise RedirectionError("a redirection with a login in it")
    return target
