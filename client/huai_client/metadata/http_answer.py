"""Reads an answer of HTTP/1.1 or 1.0 (RFC 9112): its head, then its body as it comes.

Reads from a stream, opens none.  Any bytes give an answer or an `AnswerError`; lines and their
number are bounded.  Rule: where the body ends is what the head says, and a head that says two
things about it is refused.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple, Protocol

_LINE_BYTES = 65_536
_LINES = 100
"""Headers of an answer, headers after its last chunk, and interim answers before it."""
_STATUS = re.compile(rb"HTTP/1\.([0-9]) ([1-9][0-9]{2})(?: (.*))?")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*)")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")
_CLOSE = re.compile(r"\bclose\b", re.IGNORECASE)
_LENGTH = re.compile("[0-9]{1,18}")
_SWITCHING = 101
_INTERIM = range(100, 200)
_BODILESS = (204, 304)


class AnswerError(Exception):
    """What comes is no answer of HTTP."""


class Stream(Protocol):
    """What an answer is read from, as `io.BufferedReader` is one."""

    def readline(self, size: int, /) -> bytes:
        """The next line, or `size` bytes of it."""

    def read1(self, size: int, /) -> bytes:
        """At most `size` bytes, as soon as there are any; none at the end."""


class Head(NamedTuple):
    """What stands before the body."""

    status: int
    reason: str
    headers: Mapping[str, str]
    """By name in lower case; those of one name as one, with commas."""
    stays: bool = False
    """Whether the connection stays open after the answer."""

    @property
    def content_type(self) -> str:
        """Without its parameters, in lower case; empty if it does not say."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def read_head(stream: Stream) -> Head:
    """The head of the final answer; interim ones are passed over."""
    for _ in range(_LINES):
        line = _line(stream)
        found = _STATUS.fullmatch(line)
        if not found:
            said = "nothing" if not line else "no status line"
            raise AnswerError(f"the answer begins with {said}")
        headers = _headers(stream)
        stays = found[1] != b"0" and not _CLOSE.search(headers.get("connection", ""))
        head = Head(int(found[2]), _text(found[3] or b""), headers, stays)
        if head.status not in _INTERIM:
            return head
        if head.status == _SWITCHING:
            raise AnswerError("the answer is in another protocol")
    raise AnswerError(f"more than {_LINES} interim answers")


class Body:
    """The body after `head`."""

    def __init__(self, head: Head, stream: Stream) -> None:
        self._stream = stream
        coding = head.headers.get("transfer-encoding", "").lower()
        if coding not in ("", "chunked"):
            raise AnswerError("the answer has an unknown transfer coding")
        self._chunked = bool(coding)
        self._over = head.status in _BODILESS
        self._left: int | None = None
        """Bytes of the body, or of the chunk; None: up to the end of the stream."""
        if self._chunked:
            self._left = 0
        elif "content-length" in head.headers:
            self._left = _length(head.headers["content-length"])
        self._first = True

    @property
    def complete(self) -> bool:
        """Whether it was read to an end that the head or its last chunk told."""
        return self._over and self._left == 0

    def read(self, size: int) -> bytes:
        """At most `size` bytes, as soon as there are any; none at its end, also an early one."""
        if self._over:
            return b""
        if self._chunked and not self._left:
            self._left = self._chunk()
        most = size if self._left is None else min(size, self._left)
        data = self._stream.read1(most) if most else b""
        if self._left is not None:
            self._left -= len(data)
        if not data:
            if self._chunked and self._left:
                raise AnswerError("the answer ended early")
            self._over = True
        return data

    def _chunk(self) -> int:
        """The size of the next chunk; after the last one, nothing of the answer is left."""
        if not self._first and _line(self._stream):
            raise AnswerError("a chunk that is longer than it said")
        self._first = False
        found = _SIZE.fullmatch(_line(self._stream))
        if not found:
            raise AnswerError("the answer ended early, or a chunk has no size")
        size = int(found[1], 16)
        if not size:
            _headers(self._stream)
        return size


def _headers(stream: Stream) -> dict[str, str]:
    """Up to the empty line; a line that begins with a blank goes on with the one before."""
    found: dict[str, str] = {}
    name = ""
    for _ in range(_LINES + 1):
        line = _line(stream)
        if not line:
            return found
        header = _HEADER.fullmatch(line)
        if header:
            name = _text(header[1]).lower()
            before = found.get(name)
            value = _text(header[2])
            found[name] = value if before is None else f"{before}, {value}"
        elif name and line[:1] in (b" ", b"\t"):
            found[name] = f"{found[name]} {_text(line)}"
        else:
            raise AnswerError("a header without a name")
    raise AnswerError(f"more than {_LINES} headers")


def _line(stream: Stream) -> bytes:
    """The next line without its end; empty at the end of the stream."""
    line = stream.readline(_LINE_BYTES + 1)
    if len(line) > _LINE_BYTES:
        raise AnswerError(f"a line of more than {_LINE_BYTES} bytes")
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _text(data: bytes) -> str:
    return data.strip().decode("latin-1")


def _length(text: str) -> int:
    """What Content-Length says, once or several times the same."""
    lengths = {each.strip() for each in text.split(",")}
    if len(lengths) != 1 or not _LENGTH.fullmatch(length := lengths.pop()):
        raise AnswerError("the answer does not say how long it is")
    return int(length)
