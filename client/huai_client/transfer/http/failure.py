"""What libcurl's errors mean (libcurl-errors(3)).

Pure, as the numbers are (`curl.errors`).
"""

from huai_client.config.proxies import Proxy
from huai_client.config.tls import certificate_hint
from huai_client.metadata.curl import errors
from huai_client.metadata.curl.errors import CurlError
from huai_client.transfer.errors import (
    ConnectionBrokenError,
    TransferError,
    UnreachableError,
    UpstreamRefusedError,
    UpstreamSilentError,
)
from huai_client.transfer.urls import ContentUrl

_AGAIN = "sync again: files that have arrived are kept"
_KINDS = (
    (
        errors.NO_AUTHORITIES,
        UpstreamRefusedError,
        "check SSL_CERT_FILE and SSL_CERT_DIR, or install ca-certificates",
    ),
    (errors.NOT_HTTP, UpstreamRefusedError, "check the content URL: what answers is not HTTP"),
    ({errors.NO_TLS}, ConnectionBrokenError, "check that what answers there speaks TLS"),
    (errors.NO_HOST, UnreachableError, "check the content URL, and that its server is running"),
)


def failure_of(error: CurlError, url: ContentUrl, proxy: Proxy | None = None) -> TransferError:
    """Return what `error` means at `url`; `proxy`: the one that libcurl was to connect to."""
    number, reason = error.number, error.reason
    said = f"{url}: {reason} (libcurl {number})"
    if proxy is not None and (number in errors.NO_HOST or "CONNECT" in reason):
        return UnreachableError(f"{url}: {proxy}: {reason} (libcurl {number})", hint=proxy.hint)
    if number in errors.NOT_TRUSTED:
        return UpstreamRefusedError(said, hint=certificate_hint(reason))
    if number == errors.SILENT:
        return UpstreamSilentError(said, hint=_AGAIN)
    for numbers, kind, hint in _KINDS:
        if number in numbers:
            return kind(said, hint=hint)
    return ConnectionBrokenError(said, hint=_AGAIN)


def is_lasting(number: int) -> bool:
    """Whether to ask again at once is in vain."""
    return number in errors.NOT_TRUSTED | errors.NO_AUTHORITIES | errors.NOT_HTTP | errors.NO_HOST
