"""Judges a response of HTTP to a request for some bytes (RFC 9110).

Pure.  Everything in a response is up to the server: a length or a range that is not exactly the
requested one makes it useless.
"""

import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import NamedTuple

from huai_client.metadata.curl.head import REDIRECT_STATUSES, Head, parse_http_date, retry_after
from huai_schema.codec.publish_rules import VOLATILE_BYTES

_RANGE = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19}|\*)")
_LENGTH = re.compile(r"[0-9]{1,19}")
_GONE = (404, 410)
_LOGIN = (401, 407)
_FULL = (429, 503)
_UNSATISFIABLE = 416
_TIMED_OUT = 408
_FAILING = range(500, 600)
_WHOLE, _PART = 200, 206


class RequestedRange(NamedTuple):
    """The bytes of one request."""

    first: int
    """The position of the first byte in the file."""
    end: int
    """The position after the last byte."""
    size: int
    """The size of the whole file."""
    from_start: bool = True
    """True if a whole file can be used instead."""
    proved: bool = True
    """True if a digest will prove the content."""
    changes: bool = False
    """True for a volatile file, which may have changed and have any size up to its limit."""

    @property
    def is_whole(self) -> bool:
        """True if the range is all of the file."""
        return self.first == 0 and self.end == self.size

    @property
    def most(self) -> int:
        """The largest acceptable size of the file."""
        return max(self.size, VOLATILE_BYTES) if self.changes else self.size

    @property
    def header(self) -> str:
        """The value of `Range` after `bytes=`, or empty for a request without it."""
        return "" if self.is_whole and self.from_start else f"{self.first}-{self.end - 1}"


class Meaning(Enum):
    """The meaning of a response, and so what to do next."""

    TAKE = auto()
    """The body has the requested bytes."""
    REDIRECT = auto()
    """Request the other URL instead."""
    MISSING = auto()
    """The file does not exist."""
    OTHER = auto()
    """The file has another size or time."""
    DENIED = auto()
    """The file is not served."""
    LOGIN = auto()
    """A login is required."""
    FULL = auto()
    """The server has too many requests now."""
    FAILING = auto()
    """The server failed, perhaps temporarily."""
    UNFIT = auto()
    """The response does not match the request."""
    NO_RANGES = auto()
    """The server does not send ranges."""


class Verdict(NamedTuple):
    """The meaning of one response, with its details."""

    meaning: Meaning
    reason: str = ""
    """A reason for people."""
    begins: int = 0
    """The position in the file of the body's first byte."""
    most: int = 0
    """The largest number of bytes to accept of the body."""
    modified: int | None = None
    """Last-Modified, seconds since the epoch; None if missing."""
    retry_after: float = 0
    """Seconds to wait."""
    location: str = ""


def judge(head: Head, requested: RequestedRange, now: float) -> Verdict:
    """Judge `head` as a response to `requested`; `now` in seconds since the epoch."""
    status, fields = head.status, head.fields
    reason = f"HTTP {status}"
    if status == _WHOLE:
        return _judge_whole(fields, requested)
    if status == _PART:
        return _judge_part(fields, requested)
    if status in REDIRECT_STATUSES:
        return Verdict(Meaning.REDIRECT, reason, location=fields.get("location", ""))
    if status in _FULL:
        after = retry_after(fields.get("retry-after"), now)
        return Verdict(Meaning.FULL, reason, retry_after=after)
    for meaning, statuses in (
        (Meaning.MISSING, _GONE),
        (Meaning.LOGIN, _LOGIN),
        (Meaning.NO_RANGES, (_UNSATISFIABLE,) if requested.header else ()),
        (Meaning.FAILING, (_TIMED_OUT, *_FAILING)),
        (Meaning.DENIED, range(400, 500)),
    ):
        if status in statuses:
            return Verdict(meaning, reason)
    return Verdict(Meaning.UNFIT, reason if status else "the response is not HTTP")


def _judge_whole(fields: Mapping[str, str], requested: RequestedRange) -> Verdict:
    """Judge a body that is the whole file."""
    length = _length(fields)
    if unfit := _encoding_error(fields, requested, length, requested.size):
        return Verdict(Meaning.UNFIT, unfit)
    fits = length == requested.size or (requested.changes and (length or 0) <= requested.most)
    if length is not None and not fits:
        return Verdict(Meaning.OTHER, f"{length} bytes instead of {requested.size}")
    if not requested.from_start:
        return Verdict(Meaning.NO_RANGES, "the whole file instead of a piece")
    return Verdict(Meaning.TAKE, most=requested.most, modified=_modified(fields))


def _judge_part(fields: Mapping[str, str], requested: RequestedRange) -> Verdict:
    """Judge a body that is a piece of the file: exactly the requested one."""
    range_text = fields.get("content-range", "")
    match = _RANGE.fullmatch(range_text)
    if not requested.header or match is None:
        return Verdict(Meaning.UNFIT, f"a piece without a requested range: {range_text[:80]!r}")
    if match[3] not in ("*", str(requested.size)):
        return Verdict(Meaning.OTHER, f"{match[3]} bytes instead of {requested.size}")
    if (int(match[1]), int(match[2])) != (requested.first, requested.end - 1):
        return Verdict(Meaning.UNFIT, f"{range_text} instead of {requested.header}")
    size, length = requested.end - requested.first, _length(fields)
    if unfit := _encoding_error(fields, requested, length, size):
        return Verdict(Meaning.UNFIT, unfit)
    if length not in (None, size):
        return Verdict(Meaning.UNFIT, f"{length} bytes for a piece of {size}")
    return Verdict(Meaning.TAKE, begins=requested.first, most=size, modified=_modified(fields))


def _encoding_error(
    fields: Mapping[str, str], requested: RequestedRange, length: int | None, size: int
) -> str:
    """Return the reason why the encoding is wrong, or an empty text.

    No encoding was requested.  But a server may call a .gz file of the tree gzip-encoded: that is
    right if a digest will prove the file, and the Content-Length `length` is `size`.
    """
    encoding = fields.get("content-encoding", "identity").lower()
    if encoding == "identity" or (requested.proved and length == size):
        return ""
    return f"Content-Encoding {encoding[:40]!r}, which was not requested"


def _length(fields: Mapping[str, str]) -> int | None:
    """Return the Content-Length; None if missing or malformed."""
    text = fields.get("content-length", "")
    return int(text) if _LENGTH.fullmatch(text) else None


def _modified(fields: Mapping[str, str]) -> int | None:
    """Return the Last-Modified time, seconds since the epoch; None if missing or malformed."""
    time = parse_http_date(fields.get("last-modified", ""))
    return None if time is None else int(time)
