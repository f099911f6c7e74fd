"""What libcurl's errors mean (libcurl-errors(3)).

Pure: by number, so that libcurl need not be loaded.
"""

import re

from huai_client.config.proxies import Proxy
from huai_client.config.tls import certificate_hint
from huai_client.metadata.http import printable
from huai_client.transfer.errors import (
    ConnectionBrokenError,
    TransferError,
    UnreachableError,
    UpstreamRefusedError,
    UpstreamSilentError,
)
from huai_client.transfer.urls import ContentUrl

_NOT_HTTP = frozenset({1, 3, 43})
_NO_HOST = frozenset({5, 6, 7, 97})
"""Nobody is there, or no proxy."""
_SILENT = 28
_NOT_TRUSTED = frozenset({51, 60, 83, 90, 91})
_NO_AUTHORITIES = frozenset({77, 82})
_NO_TLS = frozenset({35})
_NOISE = re.compile(r" after [0-9]+ ms(?=:|$)|: Could(?:n't| not) connect to server$")
"""Milliseconds differ from one attempt to the next; the rest repeats "Failed to connect"."""
_AGAIN = "sync again: files that have arrived are kept"
_KINDS = (
    (
        _NO_AUTHORITIES,
        UpstreamRefusedError,
        "check SSL_CERT_FILE and SSL_CERT_DIR, or install ca-certificates",
    ),
    (_NOT_HTTP, UpstreamRefusedError, "check the content URL: what answers is not HTTP"),
    (_NO_TLS, ConnectionBrokenError, "check that what answers there speaks TLS"),
    (_NO_HOST, UnreachableError, "check the content URL, and that its server is running"),
)


def failure_of(
    number: int, text: str, url: ContentUrl, proxy: Proxy | None = None
) -> TransferError:
    """Return the error that libcurl's `number` and `text` stand for at `url`.

    `proxy`: the one that libcurl was to connect to.
    """
    reason = _NOISE.sub("", printable(text)) or "the connection broke"
    said = f"{url}: {reason} (libcurl {number})"
    if proxy is not None and (number in _NO_HOST or "CONNECT" in reason):
        return UnreachableError(f"{url}: {proxy}: {reason} (libcurl {number})", hint=proxy.hint)
    if number in _NOT_TRUSTED:
        return UpstreamRefusedError(said, hint=certificate_hint(reason))
    if number == _SILENT:
        return UpstreamSilentError(said, hint=_AGAIN)
    for numbers, kind, hint in _KINDS:
        if number in numbers:
            return kind(said, hint=hint)
    return ConnectionBrokenError(said, hint=_AGAIN)


def is_lasting(number: int) -> bool:
    """Whether to ask again at once is in vain."""
    return number in _NOT_TRUSTED | _NO_AUTHORITIES | _NOT_HTTP | _NO_HOST
