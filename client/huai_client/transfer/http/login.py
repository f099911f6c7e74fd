"""What the administrator's own URLs are sent beside the question, and whom they are believed.

Logins stand in ~/.netrc, or in the file that NETRC names; other headers, such as a token, in the
file of `http_headers`.  Rule to keep: a URL that the upstream named gets none of it, and no other
service does, wherever a redirection leads.
"""

import os
import re
from pathlib import Path

from huai_client.metadata.http import basic, kept_login
from huai_client.transfer.options import TransferOptionsError
from huai_client.transfer.urls import ContentUrl

_FIELD = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \t]*([\x20-\x7e]*)")
_OURS = frozenset(
    ("host", "range", "if-range", "accept-encoding", "content-length", "transfer-encoding", "te")
)
"""What decides which bytes come."""
_BYTES_MAX = 65_536
_OTHERS = 0o007
LOGIN_HINT = (
    "a login stands in ~/.netrc, a token in the file of http_headers: both for URLs of client.toml "
    "alone"
)


def headers_for(url: ContentUrl, file: Path | None) -> tuple[str, ...]:
    """The header lines that the service of `url` is sent.

    Raises `TransferOptionsError` for a `file` that cannot be used, `UpstreamError` for a netrc that
    cannot.
    """
    if not url.own:
        return ()
    given = read_headers(file) if file else ()
    if any(line.lower().startswith("authorization:") for line in given):
        return given
    login = kept_login(url.source)
    return (*given, f"Authorization: {basic(login)}") if login else given


def read_headers(file: Path) -> tuple[str, ...]:
    """The header lines of `file`; empty ones and those that begin with # are passed over."""
    try:
        with file.open("rb") as opened:
            mode, text = os.fstat(opened.fileno()).st_mode, opened.read(_BYTES_MAX).decode()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise TransferOptionsError(
            f"{file}: {reason}", hint="name a file with a line NAME: VALUE for each"
        ) from error
    if mode & _OTHERS:
        raise TransferOptionsError(
            f"{file}: every user may read or change it", hint=f"chmod o= {file}"
        )
    lines = [line.strip() for line in text.splitlines()]
    return tuple(_checked(line, file) for line in lines if line and not line.startswith("#"))


def _checked(line: str, file: Path) -> str:
    found = _FIELD.fullmatch(line)
    if found is None or found[1].lower() in _OURS:
        name = found[1] if found else "a line"
        raise TransferOptionsError(
            f"{file}: {name} is not a header that may be set",
            hint="for example: Authorization: Bearer TOKEN",
        )
    return f"{found[1]}: {found[2]}"
