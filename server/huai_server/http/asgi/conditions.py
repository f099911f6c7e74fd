"""The conditions of a request, compared with what would be sent (RFC 9110, section 13).

Pure.  Rule: a date that cannot be read is ignored; an ETag is compared byte for byte.
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

NOT_MODIFIED, FAILED = 304, 412
_DATE_LENGTH = 64
"""Longer text is not a date: a header may hold anything."""


class Validators(NamedTuple):
    """The validators of a version of a resource."""

    etag: str
    """A strong ETag, as in the header."""
    modified: int
    """Seconds since the epoch."""


def judge(headers: Mapping[str, str], validators: Validators) -> int | None:
    """Return 304 if not modified, 412 for a failed condition, None to serve it (section 13.2.2)."""
    match, since = headers.get("if-match"), headers.get("if-unmodified-since")
    if match is not None:
        if not _names_strongly(match, validators.etag):
            return FAILED
    elif since is not None:
        then = _seconds(since)
        if then is not None and validators.modified > then:
            return FAILED
    match, since = headers.get("if-none-match"), headers.get("if-modified-since")
    if match is not None:
        return NOT_MODIFIED if names_weakly(match, validators.etag) else None
    if since is not None:
        then = _seconds(since)
        return NOT_MODIFIED if then is not None and validators.modified <= then else None
    return None


def names_weakly(header: str, etag: str) -> bool:
    """True if the list `header` has `etag`, compared weakly, or `*` (section 13.1.2)."""
    offers = [offer.strip().removeprefix("W/") for offer in header.split(",")]
    return etag.removeprefix("W/") in offers or "*" in offers


def respond(
    request: Request,
    text: str,
    media_type: str,
    headers: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    """Return a response with an ETag of `text`; 304 instead of 200 if the request names that.

    Its Cache-Control is no-cache, unless `headers` have another.
    """
    body = text.encode()
    etag = f'W/"{sha256(body).hexdigest()[:32]}"'
    all_headers = {"ETag": etag, "Cache-Control": "no-cache", **(headers or {})}
    condition = request.headers.get("if-none-match")
    if status == 200 and condition is not None and names_weakly(condition, etag):
        return Response(status_code=NOT_MODIFIED, headers=all_headers)
    return Response(body, status, headers=all_headers, media_type=media_type)


def _names_strongly(header: str, etag: str) -> bool:
    """True if the list `header` has `etag`, compared strongly, or `*`."""
    offers = [offer.strip() for offer in header.split(",")]
    return etag in offers or "*" in offers


def _seconds(date: str) -> int | None:
    """Parse an HTTP date to seconds since the epoch; None if it is malformed."""
    try:
        return int(parsedate_to_datetime(date[:_DATE_LENGTH]).timestamp())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
