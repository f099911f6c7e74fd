"""A folder of a web server as a content URL: scheme, host, port and path alone.

Pure.  A login would be public, so it is refused; so are a query, a fragment, and `..` in any
spelling.
"""

import re

HOST = r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?\])"
"""A host name or an address; IPv6 in brackets."""
_URL = re.compile(
    rf"https?://{HOST}(?::([0-9]{{1,5}}))?(?:/((?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{{2}})*))?"
)
CONTENT_RELATION = "urn:x-huai:content"
"""The relation of a Link header with the content URL for the file of a block index (FORMAT.md)."""
_ENCODED = re.compile(rb"%([0-9A-Fa-f]{2})")
_PORT_MOST = 65_535
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")


def is_web_folder(text: str) -> bool:
    """True if `text` is `http[s]://HOST[:PORT][/PATH]` without login, query, `.` and `..`."""
    match = _URL.fullmatch(text)
    if match is None or int(match[1] or 0) > _PORT_MOST:
        return False
    return all(map(_is_name, (match[2] or "").split("/")))


def _is_name(part: str) -> bool:
    """True if a percent-encoded part of a path is empty or the name of an entry."""
    name = _ENCODED.sub(lambda code: bytes((int(code[1], 16),)), part.encode("ascii"))
    return name not in (b".", b"..") and b"/" not in name and not _CONTROL.search(name)
