r"""Bytes that would break a line, made visible (FORMAT.md, "Escaping").

Only 0x00-0x1f, 0x7f and the backslash are escaped, each as `\xHH`, and nothing else may be:
every byte string has exactly one spelling.
"""

import re

from huai_schema.errors import FormatError

_SPECIAL = re.compile(rb"[\x00-\x1f\x7f\\]")
_ESCAPE = re.compile(rb"\\(x[01][0-9a-f]|x7f|x5c)?")


def escape(raw: bytes) -> bytes:
    """The spelling of `raw` inside a line."""
    return _SPECIAL.sub(lambda found: b"\\x%02x" % found[0][0], raw)


def unescape(text: bytes) -> bytes:
    """The bytes that `text` spells; any other spelling of them is a `FormatError`."""
    if _SPECIAL.search(text) is None:
        return text
    raw = _ESCAPE.sub(_decode_one, text)
    if escape(raw) != text:
        raise FormatError(f"not in canonical spelling: {text[:200]!r}")
    return raw


def _decode_one(found: re.Match[bytes]) -> bytes:
    code = found[1]
    if code is None:
        raise FormatError(f"a stray backslash: {found.string[:200]!r}")
    return bytes((int(code[1:], 16),))
