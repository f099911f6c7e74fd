"""The status and headers of a response, from libcurl's lines, and the target of a redirect.

Pure.  Any bytes give a head.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote, urljoin, urlsplit

from msgspec import Struct

from huai_program.urls import service_of, split_url, without_login

_STATUS = re.compile(rb"HTTP/[0-9.]{1,8} ([0-9]{3})(?: ([^\r\n]*))?(?:\r?\n|$)")
_FIELDS_MAX = 200
_VALUE_MAX = 16_384
_DATE = re.compile(
    "[A-Z][a-z]{2}, ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Head(Struct, frozen=True):
    """The status and headers of a response."""

    status: int
    fields: Mapping[str, str]
    """Values by name in lower case; of a repeated header, the first."""
    reason: str = ""

    @property
    def content_type(self) -> str:
        """The media type without parameters, in lower case; empty if missing."""
        return self.fields.get("content-type", "").partition(";")[0].strip().lower()


def read_head(lines: bytes) -> Head:
    """Parse the last head of `lines`, after those of a proxy and interim ones.

    Its status is 0 if it is missing or malformed.
    """
    begin = lines.rfind(b"\nHTTP/") + 1
    first, *rest = lines[begin:].splitlines() or [b""]
    status_line = _STATUS.match(first + b"\n")
    fields: dict[str, str] = {}
    for line in rest[:_FIELDS_MAX]:
        name, colon, value = line.partition(b":")
        if colon:
            text = value[:_VALUE_MAX].strip(b" \t\r").decode("latin-1")
            fields.setdefault(name.decode("latin-1").lower(), text)
    if not status_line:
        return Head(0, fields)
    return Head(int(status_line[1]), fields, (status_line[2] or b"").strip().decode("latin-1"))


def retry_after(text: str | None, now: float) -> float:
    """Parse a Retry-After (RFC 9110, 10.2.3) to seconds from `now` (s since the epoch) on.

    0 if it is missing or malformed.
    """
    if text is None:
        return 0
    if re.fullmatch("[0-9]{1,9}", text.strip()):
        return float(text.strip())
    until = parse_http_date(text)
    return 0 if until is None else max(0.0, until - now)


def parse_http_date(text: str) -> float | None:
    """Parse an HTTP date (RFC 9110, 5.6.7) to seconds since the epoch; None if malformed."""
    try:
        usual = _DATE.fullmatch(text)
        if usual:
            month = _MONTHS.index(usual[2]) + 1
            day, year, hour, minute, second = (int(usual[number]) for number in (1, 3, 4, 5, 6))
            return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
        import email.utils  # for the obsolete forms, which are rare: it takes long to load

        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


_SAFE = "!#$%&'()*+,/:;=?@[]~"
_BYTES_MAX = 16_384
_CONTROL = re.compile(r"[\x00-\x20\x7f]")
REDIRECT_STATUSES = (301, 302, 303, 307, 308)
"""The statuses of a redirect."""
REDIRECTIONS_MOST = 5
"""Redirects in a row."""


class RedirectionError(Exception):
    """A redirect that is not followed; its text is the reason."""


def redirect_target(address: str, location: str) -> str:
    """Return the target of a redirect from `address`, without a login.

    Raises `RedirectionError` for a target that is not HTTP, and for one from https to http.
    """
    if not location or len(location) > _BYTES_MAX:
        raise RedirectionError("a redirect without a target")
    try:
        target = quote(urljoin(address, location.strip(" \t")), safe=_SAFE)
        split = split_url(target)
        is_valid = bool(split.hostname) and bool(service_of(target))
    except ValueError:
        is_valid = False
        target, split = "", urlsplit("")
    if not is_valid or _CONTROL.search(target):
        raise RedirectionError("a redirect to a malformed URL")
    if split.scheme not in ("http", "https"):
        raise RedirectionError(f"a redirect to {split.scheme[:20]}, which is not HTTP")
    if address.startswith("https:") and split.scheme != "https":
        raise RedirectionError("a redirect from https to http")
    return without_login(target)
