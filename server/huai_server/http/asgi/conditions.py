"""The conditions of a request, held against what would be sent (RFC 9110, section 13).

Pure.  Rule: a date that cannot be read is no condition; an ETag is compared as it stands.
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple

NOT_MODIFIED, FAILED = 304, 412
_DATE_LENGTH = 64
"""Longer text is not a date: a header may hold anything."""


class Validators(NamedTuple):
    """By what a version of a resource is known."""

    etag: str
    """As in the header; not a weak one."""
    modified: int
    """Seconds since the epoch."""


def judge(headers: Mapping[str, str], validators: Validators) -> int | None:
    """The status with which a GET ends at its conditions; None: it goes on (section 13.2.2)."""
    match, since = headers.get("if-match"), headers.get("if-unmodified-since")
    if match is not None:
        if not _names(match, validators.etag):
            return FAILED
    elif since is not None and not _is_unmodified(since, validators.modified):
        return FAILED
    match, since = headers.get("if-none-match"), headers.get("if-modified-since")
    if match is not None:
        return NOT_MODIFIED if names_weakly(match, validators.etag) else None
    if since is not None:
        then = _seconds(since)
        return NOT_MODIFIED if then is not None and validators.modified <= then else None
    return None


def names_weakly(header: str, etag: str) -> bool:
    """The weak comparison of section 13.1.2 with a list."""
    offers = [offer.strip().removeprefix("W/") for offer in header.split(",")]
    return etag.removeprefix("W/") in offers or "*" in offers


def _names(header: str, etag: str) -> bool:
    """The strong comparison."""
    offers = [offer.strip() for offer in header.split(",")]
    return etag in offers or "*" in offers


def _is_unmodified(since: str, modified: int) -> bool:
    then = _seconds(since)
    return then is None or modified <= then


def _seconds(date: str) -> int | None:
    """Seconds since the epoch; None: this is no date."""
    try:
        return int(parsedate_to_datetime(date[:_DATE_LENGTH]).timestamp())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
