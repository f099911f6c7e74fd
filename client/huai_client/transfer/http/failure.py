"""What libcurl's errors mean (libcurl-errors(3)).

Pure: by number, so that libcurl need not be loaded.
"""

from huai_client.metadata.http import printable
from huai_client.transfer.errors import (
    ConnectionBrokenError,
    TransferError,
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
_AGAIN = "sync again: files that have arrived are kept"
_KINDS = (
    (
        _NOT_TRUSTED,
        UpstreamRefusedError,
        "its certificate is not valid here: tls = {ca = FILE} or SSL_CERT_FILE names an authority",
    ),
    (
        _NO_AUTHORITIES,
        UpstreamRefusedError,
        "check SSL_CERT_FILE and SSL_CERT_DIR, or install ca-certificates",
    ),
    (_NOT_HTTP, UpstreamRefusedError, "check the content URL: what answers is not HTTP"),
    (_NO_TLS, ConnectionBrokenError, "check that what answers there speaks TLS"),
    (
        _NO_HOST,
        ConnectionBrokenError,
        "check the content URL, and the proxy that the environment names",
    ),
)


def failure_of(number: int, text: str, url: ContentUrl) -> TransferError:
    """The error that libcurl's `number` and `text` stand for at `url`."""
    said = f"{url}: {printable(text) or 'the connection broke'} (libcurl {number})"
    if number == _SILENT:
        return UpstreamSilentError(said, hint=_AGAIN)
    for numbers, kind, hint in _KINDS:
        if number in numbers:
            return kind(said, hint=hint)
    return ConnectionBrokenError(said, hint=_AGAIN)


def is_lasting(number: int) -> bool:
    """Whether to ask again at once is in vain."""
    return number in _NOT_TRUSTED | _NO_AUTHORITIES | _NOT_HTTP | _NO_HOST
