"""A glob of rsync as a regular expression over bytes.

Pure.  Follows lib/wildmatch.c: `*` stops at a slash, `**` does not, `?` and classes match no
slash, and an incomplete glob matches nothing.  After a star only the nearest place that fits is
tried, where a farther one gives no other result: so no path takes exponential time.
"""

import re
from collections.abc import Iterable

ONE_STAR = b"*"
TWO_STARS = b"**"
_ONE = b"[^/\\x00]"
_NO_NAME = {0, ord("/")}
_ASCII = [chr(code) for code in range(128)]
_ALNUM = {ord(c) for c in _ASCII if c.isalnum()}
_GRAPH = set(range(0x21, 0x7F))
_CLASSES = {
    b"alnum": _ALNUM,
    b"alpha": {ord(c) for c in _ASCII if c.isalpha()},
    b"blank": set(b" \t"),
    b"cntrl": {*range(0x20), 0x7F},
    b"digit": set(b"0123456789"),
    b"graph": _GRAPH,
    b"lower": {ord(c) for c in _ASCII if c.islower()},
    b"print": _GRAPH | {ord(" ")},
    b"punct": _GRAPH - _ALNUM,
    b"space": set(b" \t\n\v\f\r"),
    b"upper": {ord(c) for c in _ASCII if c.isupper()},
    b"xdigit": set(b"0123456789abcdefABCDEF"),
}


class _CutShortError(Exception):
    """The glob ends inside a class or an escape, or names an unknown class."""


def literal_tokens(text: bytes) -> list[bytes]:
    """One expression for each byte of `text`, in which no byte is special."""
    return [re.escape(text[at : at + 1]) for at in range(len(text))]


def glob_tokens(glob: bytes) -> list[bytes] | None:
    """The tokens of a glob; None: the glob matches nothing.

    A token is an expression for one byte, `ONE_STAR` or `TWO_STARS`.
    """
    found: list[bytes] = []
    at = 0
    try:
        while at < len(glob):
            token, at = _token(glob, at)
            found.append(token)
    except _CutShortError:
        return None
    return found


def expression(tokens: list[bytes], end: bytes) -> bytes:
    """The regular expression of `tokens`, for re.DOTALL; `end` is one for the rest of the subject.

    `*` stays within a component, so the tokens between two `*` are tried at their nearest place
    only.  `**` crosses slashes, so the tokens between two `**` are tried at each place as a whole.
    """
    first, *others = _split(tokens, TWO_STARS)
    if not others:
        return _within(first, end)
    *middle, last = others
    parts = [b"(?>.*?%s)" % _within(part, None) for part in middle]
    return _within(first, None) + b"".join(parts) + b".*" + _within(last, end)


def _within(tokens: list[bytes], end: bytes | None) -> bytes:
    """The expression of tokens without `**`; `end` is None if others follow."""
    first, *others = (b"".join(chunk) for chunk in _split(tokens, ONE_STAR))
    if end is None:
        return first + b"".join(b"(?>%s*?%s)" % (_ONE, chunk) for chunk in others)
    if not others:
        return first + end
    *middle, last = others
    parts = [b"(?>%s*?%s)" % (_ONE, chunk) for chunk in middle]
    return first + b"".join(parts) + _ONE + b"*" + last + end


def _split(tokens: list[bytes], mark: bytes) -> list[list[bytes]]:
    parts: list[list[bytes]] = [[]]
    for token in tokens:
        if token == mark:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _token(glob: bytes, at: int) -> tuple[bytes, int]:
    """The token at `at`, and the position of the next one."""
    byte = glob[at : at + 1]
    if byte == b"\\":
        return re.escape(bytes((_byte(glob, at + 1),))), at + 2
    if byte == b"?":
        return _ONE, at + 1
    if byte == b"*":
        after = at + len(glob[at:]) - len(glob[at:].lstrip(b"*"))
        return (ONE_STAR if after == at + 1 else TWO_STARS), after
    if byte == b"[":
        codes, after = _class(glob, at + 1)
        return _one_of(codes), after
    return re.escape(byte), at + 1


def _class(glob: bytes, at: int) -> tuple[set[int], int]:
    """The bytes that a class matches, and the position after it; `at` is after its bracket."""
    negated = _byte(glob, at) in b"!^"
    at += negated
    codes: set[int] = set()
    start, previous = at, 0
    while at == start or _byte(glob, at) != ord("]"):
        added, previous, at = _member(glob, at, previous)
        codes.update(added)
    return (set(range(256)) - codes if negated else codes) - _NO_NAME, at + 1


def _member(glob: bytes, at: int, previous: int) -> tuple[Iterable[int], int, int]:
    """One part of a class: its bytes, the first byte of a range after it (0: none), its end."""
    code = _byte(glob, at)
    if code == ord("\\"):
        code = _byte(glob, at + 1)
        return (code,), code, at + 2
    if code == ord("-") and previous and glob[at + 1 : at + 2] not in (b"", b"]"):
        at += 1 + (glob[at + 1 : at + 2] == b"\\")
        return range(previous, _byte(glob, at) + 1), 0, at + 1
    if glob.startswith(b"[:", at):
        end = glob.find(b"]", at + 2)
        if end < 0:
            raise _CutShortError
        if end > at + 2 and glob[end - 1 : end] == b":":
            return _named(glob[at + 2 : end - 1]), 0, end + 1
    return (code,), code, at + 1


def _named(name: bytes) -> set[int]:
    if name not in _CLASSES:
        raise _CutShortError
    return _CLASSES[name]


def _byte(glob: bytes, at: int) -> int:
    if at >= len(glob):
        raise _CutShortError
    return glob[at]


def _one_of(codes: set[int]) -> bytes:
    if not codes:
        return b"(?!)"
    return b"[" + b"".join(b"\\x%02x" % code for code in sorted(codes)) + b"]"
