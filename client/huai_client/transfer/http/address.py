"""The URL of a path below a content URL.  Pure."""

from urllib.parse import quote

from huai_schema.paths import RelPath

_SAFE = "!$&'()*+,;=:@/"
"""Besides letters, digits and `-._~`: characters that stay unescaped (RFC 3986, `pchar`)."""


def address_of(base: str, path: RelPath) -> str:
    """Return the URL of `path` below `base`, which ends with a slash."""
    return base + quote(path, safe=_SAFE)
