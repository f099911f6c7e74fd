r"""Escapes of bytes that would break a line (FORMAT.md, "Escaping").

Only 0x00-0x1f, 0x7f and the backslash are escaped, each as `\xHH`, and nothing else may be:
every byte string has exactly one spelling.
"""

import re

from huai_schema.errors import FormatError

_SPECIAL = re.compile(rb"[\x00-\x1f\x7f\\]")
_ESCAPE = re.compile(rb"\\(x[01][0-9a-f]|x7f|x5c)?")


def escape(raw: bytes) -> bytes:
    """Return the spelling of `raw` inside a line."""
    return _SPECIAL.sub(lambda match: b"\\x%02x" % match[0][0], raw)


def unescape(text: bytes) -> bytes:
    """Return the bytes that `text` spells; a spelling that is not canonical is a `FormatError`."""
    if _SPECIAL.search(text) is None:
        return text
    raw = _ESCAPE.sub(_decode_one, text)
    if escape(raw) != text:
        raise FormatError(f"is not the canonical spelling: {text[:200]!r}")
    return raw


def _decode_one(match: re.Match[bytes]) -> bytes:
    """Return the byte of an escape; `FormatError` for a stray backslash."""
    code = match[1]
    if code is None:
        raise FormatError(f"a stray backslash: {match.string[:200]!r}")
    return bytes((int(code[1:], 16),))
