"""The folder of a web server as a content URL: scheme, host, port, path, and nothing else.

Pure.  There is no login in it, which would be everybody's; no query and no fragment; and no way up,
however it is spelt.
"""

import re

HOST = r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?\])"
"""A name, or an address; one of IPv6 in brackets."""
_URL = re.compile(
    rf"https?://{HOST}(?::([0-9]{{1,5}}))?(?:/((?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{{2}})*))?"
)
_ENCODED = re.compile(rb"%([0-9A-Fa-f]{2})")
_PORT_MOST = 65_535
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")


def is_web_folder(text: str) -> bool:
    """Whether `text` is `http[s]://HOST[:PORT][/PATH]` with a path that only leads down."""
    found = _URL.fullmatch(text)
    if found is None or int(found[1] or 0) > _PORT_MOST:
        return False
    return all(map(_is_name, (found[2] or "").split("/")))


def _is_name(part: str) -> bool:
    """Whether a percent-encoded part of a path names what a directory may hold, or nothing."""
    name = _ENCODED.sub(lambda code: bytes((int(code[1], 16),)), part.encode("ascii"))
    return name not in (b".", b"..") and b"/" not in name and not _CONTROL.search(name)
