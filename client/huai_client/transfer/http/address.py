"""A path below a content URL as an address.  Pure."""

from urllib.parse import quote

from huai_schema.paths import RelPath

_SAFE = "!$&'()*+,;=:@/"
"""Beside letters, digits and `-._~`: what a path may hold as it is (RFC 3986, `pchar`)."""


def address_of(base: str, path: RelPath) -> str:
    """The address of `path` below `base`, which ends with a slash."""
    return base + quote(path, safe=_SAFE)
