"""The path of an entry, and numbers, in the address of a request.

Rule: a path is bytes, in any encoding, and is read from the raw request.
"""

import re
from urllib.parse import unquote_to_bytes

from starlette.convertors import PathConvertor, register_url_convertor

from huai_schema.errors import FormatError
from huai_schema.paths import RelPath, rel_path
from huai_server.http.asgi.errors import HttpError


class _AnyText(PathConvertor):
    """The rest of an address, with newlines, at which the framework's own `path` ends."""

    regex = r"(?:.|\n)*"


_NUMBER = re.compile(r"[0-9]{1,19}")
register_url_convertor("any_text", _AnyText())


def requested_path(raw: bytes, above: int) -> RelPath:
    """Parse a raw (percent-encoded) address to the path after its first `above` parts.

    Raises status 404 for a path that no commit can hold, or a part with an escaped slash.
    """
    parts = [unquote_to_bytes(part) for part in raw.split(b"/")[above:]]
    try:
        if any(b"/" in part for part in parts):
            raise FormatError("an escaped slash")
        return rel_path(b"/".join(parts))
    except FormatError:
        hint = "percent-encode its bytes"
        raise HttpError(404, "the commit names no such path", hint=hint) from None


def parse_number(text: str) -> int:
    """Parse a number of at most 19 digits; 0 for any other text."""
    return int(text) if _NUMBER.fullmatch(text) else 0
