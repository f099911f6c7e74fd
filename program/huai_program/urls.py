"""URLs as administrators write them: one way to parse them, and one to show them.

Pure.  Rule: messages show `masked(url)` instead of a URL, and no error of this module quotes a part
of a URL, since the host of a malformed one may be half of a password.
"""

import re
from urllib.parse import SplitResult, urlsplit

_USUAL_PORTS = {"http": 80, "https": 443, "rsync": 873}
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)(?:([^/?#]*)@)?([^/?#@]*)(.*)", re.DOTALL)
"""The scheme, login, host with port, and everything after them."""
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.%A-Za-z_-]+\]|[^\s:@\[\]]*)(:[0-9]*)?")
_HIDDEN = "…"


def split_url(url: str) -> SplitResult:
    """Split a URL; `ValueError` if host or port is malformed."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises
    except ValueError:
        raise ValueError("the host or the port is malformed") from None
    return parts


def service_of(url: str) -> str:
    """Return scheme, host and port as written in `url`; empty if it has no host or is malformed."""
    try:
        parts = split_url(url)
    except ValueError:
        return ""
    if not parts.scheme or not parts.hostname:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")


def same_service(url: str, other: str) -> bool:
    """Return True if scheme, host and port are equal, the only case in which a login is sent.

    Raises `ValueError` if a URL is malformed.
    """
    return _service(url) == _service(other)


def login_of(url: str) -> str | None:
    """Return the USER:PASSWORD of a URL, still percent-encoded; None without one."""
    match = _PARTS.match(url)
    return match[2] if match else None


def without_login(url: str) -> str:
    """Return the URL to request, without login; for people use `masked`."""
    match = _PARTS.match(url)
    return match[1] + match[3] + match[4] if match else url


def masked(url: str) -> str:
    """Return a URL, or a malformed one, without login, query and fragment.

    If a password might end anywhere, only the scheme is left.
    """
    text = url.strip()
    match = _PARTS.match(text)
    if match is None:
        return _masked_without_scheme(text)
    scheme, login, host, rest = match.groups()
    path, secret, _ = (
        re.split(r"([?#])", rest, maxsplit=1) if re.search("[?#]", rest) else (rest, "", "")
    )
    host_match = _HOST.fullmatch(host)
    # The first slash may be in a password, as in "me:1/2@host", but not in "host/@scope".
    more = login is not None or (host_match and host_match[1])
    doubtful = "@" in rest if more else re.search("[^/]@", rest)
    if host_match is None or doubtful:
        return f"{scheme}{_HIDDEN}" if "@" in text or secret else text
    return f"{scheme}{host}{path}{secret}{_HIDDEN if secret else ''}"


def _masked_without_scheme(text: str) -> str:
    """Mask a path, `HOST::MODULE`, `[USER@]HOST:PATH`, or a URL whose scheme was forgotten."""
    if text.startswith("/") and not text.startswith("//"):
        return text
    if "@" in text.partition(":")[2]:
        return _HIDDEN
    return re.sub(r"([?#]).*", rf"\1{_HIDDEN}", text, flags=re.DOTALL)


def _service(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of a URL; no port for an unknown scheme."""
    parts = split_url(url)
    return (
        parts.scheme,
        (parts.hostname or "").lower(),
        parts.port or _USUAL_PORTS.get(parts.scheme),
    )
