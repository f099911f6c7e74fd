"""Headers for the administrator's own URLs.

Logins are in ~/.netrc, or in the file of NETRC; other headers, such as a token, in the file of
`http_headers`.  Rule: a URL that the upstream named gets none of them, and no other service does,
wherever a redirect leads.
"""

import os
import re
from pathlib import Path

from huai_client.metadata.http import basic_auth, netrc_login
from huai_client.transfer.options import TransferOptionsError
from huai_client.transfer.urls import ContentUrl

_FIELD = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \t]*([\x20-\x7e]*)")
_OURS = frozenset(
    ("host", "range", "if-range", "accept-encoding", "content-length", "transfer-encoding", "te")
)
"""Headers that decide which bytes are sent."""
_BYTES_MAX = 65_536
_OTHERS = 0o007
LOGIN_HINT = (
    "put a login into ~/.netrc, a token into the file of http_headers: both are sent to URLs of "
    "client.toml alone"
)


def headers_for(url: ContentUrl, file: Path | None) -> tuple[str, ...]:
    """Return the header lines for the service of `url`; none if the upstream named it.

    Raises `TransferOptionsError` for an unusable `file`, `UpstreamError` for an unusable netrc.
    """
    if not url.own:
        return ()
    lines = read_headers(file) if file else ()
    if any(line.lower().startswith("authorization:") for line in lines):
        return lines
    login = netrc_login(url.source)
    return (*lines, f"Authorization: {basic_auth(login)}") if login else lines


def read_headers(file: Path) -> tuple[str, ...]:
    """Return the header lines of `file`, without comments (#).

    Raises `TransferOptionsError` for a file that cannot be read, that every user may read, or that
    has a line that is not a permitted header.
    """
    try:
        with file.open("rb") as opened:
            mode, text = os.fstat(opened.fileno()).st_mode, opened.read(_BYTES_MAX).decode()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise TransferOptionsError(
            f"{file}: {reason}", hint="name a file with one line NAME: VALUE for each header"
        ) from error
    if mode & _OTHERS:
        raise TransferOptionsError(
            f"{file}: every user may read or change it", hint=f"chmod o= {file}"
        )
    lines = [line.strip() for line in text.splitlines()]
    return tuple(_parse_field(line, file) for line in lines if line and not line.startswith("#"))


def _parse_field(line: str, file: Path) -> str:
    """Parse a header line of the file to "NAME: VALUE".

    Raises `TransferOptionsError` if that header must not be set.
    """
    match = _FIELD.fullmatch(line)
    if match is None or match[1].lower() in _OURS:
        name = match[1] if match else "a line"
        raise TransferOptionsError(
            f"{file}: {name} is not a header that may be set",
            hint="for example: Authorization: Bearer TOKEN",
        )
    return f"{match[1]}: {match[2]}"
