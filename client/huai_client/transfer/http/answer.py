"""What an answer of HTTP means for the bytes that were asked for (RFC 9110).

Pure.  Everything in an answer is the other side's: a length or a range that is not exactly what was
asked for is no use, whatever else it may be.
"""

import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import NamedTuple

from huai_client.metadata.curl.head import Head, moment, retry_after
from huai_client.metadata.curl.redirection import ELSEWHERE
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


class Asked(NamedTuple):
    """The bytes of one request."""

    first: int
    """The first one's place in the file."""
    end: int
    """The place behind the last."""
    size: int
    """Of the whole file."""
    from_start: bool = True
    """Whether a whole file is of use, if that is sent instead."""
    proved: bool = True
    """Whether a digest will tell if it is the right content."""
    changes: bool = False
    """Whether it may have changed since, and be as large as a volatile file may be."""

    @property
    def is_whole(self) -> bool:
        """Whether that is all of the file."""
        return self.first == 0 and self.end == self.size

    @property
    def most(self) -> int:
        """So large may the whole file be."""
        return max(self.size, VOLATILE_BYTES) if self.changes else self.size

    @property
    def header(self) -> str:
        """The value of `Range` behind `bytes=`; empty: none is sent."""
        return "" if self.is_whole and self.from_start else f"{self.first}-{self.end - 1}"


class Meaning(Enum):
    """What is to be done about an answer."""

    TAKE = auto()
    """The body is what was asked for."""
    ELSEWHERE = auto()
    """Ask there instead."""
    MISSING = auto()
    """There is no such file."""
    OTHER = auto()
    """There is one by this name, of another size or time."""
    DENIED = auto()
    """It is not handed out."""
    LOGIN = auto()
    """Not without a login."""
    FULL = auto()
    """Not now: too many ask."""
    FAILING = auto()
    """The server is at fault, now at least."""
    UNFIT = auto()
    """The answer fits nothing that was asked."""
    NO_RANGES = auto()
    """Pieces of files are not handed out there."""


class Answer(NamedTuple):
    """An answer, judged."""

    meaning: Meaning
    reason: str = ""
    """For people."""
    begins: int = 0
    """The place in the file of the body's first byte."""
    most: int = 0
    """Bytes of the body that are taken at most."""
    modified: int | None = None
    """Last-Modified, seconds since the epoch; None: it is not known."""
    retry_after: float = 0
    """Seconds."""
    location: str = ""


def judge(head: Head, asked: Asked, now: float) -> Answer:
    """What `head` means for what was asked; `now` in seconds since the epoch."""
    status, fields = head.status, head.fields
    reason = f"HTTP {status}"
    if status == _WHOLE:
        return _whole(fields, asked)
    if status == _PART:
        return _part(fields, asked)
    if status in ELSEWHERE:
        return Answer(Meaning.ELSEWHERE, reason, location=fields.get("location", ""))
    if status in _FULL:
        after = retry_after(fields.get("retry-after"), now)
        return Answer(Meaning.FULL, reason, retry_after=after)
    for meaning, statuses in (
        (Meaning.MISSING, _GONE),
        (Meaning.LOGIN, _LOGIN),
        (Meaning.NO_RANGES, (_UNSATISFIABLE,) if asked.header else ()),
        (Meaning.FAILING, (_TIMED_OUT, *_FAILING)),
        (Meaning.DENIED, range(400, 500)),
    ):
        if status in statuses:
            return Answer(meaning, reason)
    return Answer(Meaning.UNFIT, reason if status else "what came is not HTTP")


def _whole(fields: Mapping[str, str], asked: Asked) -> Answer:
    """For a body that is the whole file."""
    length = _length(fields)
    if unfit := _encoded(fields, asked, length, asked.size):
        return Answer(Meaning.UNFIT, unfit)
    fits = length == asked.size or (asked.changes and (length or 0) <= asked.most)
    if length is not None and not fits:
        return Answer(Meaning.OTHER, f"{length} bytes instead of {asked.size}")
    if not asked.from_start:
        return Answer(Meaning.NO_RANGES, "the whole file instead of a piece")
    return Answer(Meaning.TAKE, most=asked.most, modified=_modified(fields))


def _part(fields: Mapping[str, str], asked: Asked) -> Answer:
    """For a body that is a piece of the file: exactly the one that was asked for."""
    said = fields.get("content-range", "")
    found = _RANGE.fullmatch(said)
    if not asked.header or found is None:
        return Answer(Meaning.UNFIT, f"a piece by no range that was asked for: {said[:80]!r}")
    if found[3] not in ("*", str(asked.size)):
        return Answer(Meaning.OTHER, f"{found[3]} bytes instead of {asked.size}")
    if (int(found[1]), int(found[2])) != (asked.first, asked.end - 1):
        return Answer(Meaning.UNFIT, f"{said} instead of {asked.header}")
    wanted, length = asked.end - asked.first, _length(fields)
    if unfit := _encoded(fields, asked, length, wanted):
        return Answer(Meaning.UNFIT, unfit)
    if length not in (None, wanted):
        return Answer(Meaning.UNFIT, f"{length} bytes for a piece of {wanted}")
    return Answer(Meaning.TAKE, begins=asked.first, most=wanted, modified=_modified(fields))


def _encoded(fields: Mapping[str, str], asked: Asked, length: int | None, wanted: int) -> str:
    """What is wrong with the encoding; empty: nothing.

    None was asked for.  But a server may call a .gz file of the tree gzip-encoded, and then it has
    its length, and its digest.
    """
    encoding = fields.get("content-encoding", "identity").lower()
    if encoding == "identity" or (asked.proved and length == wanted):
        return ""
    return f"Content-Encoding {encoding[:40]!r}, which was not asked for"


def _length(fields: Mapping[str, str]) -> int | None:
    said = fields.get("content-length", "")
    return int(said) if _LENGTH.fullmatch(said) else None


def _modified(fields: Mapping[str, str]) -> int | None:
    found = moment(fields.get("last-modified", ""))
    return None if found is None else int(found)
