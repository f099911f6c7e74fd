"""The meaning of libcurl's errors (libcurl-errors(3)).

Pure, as the numbers are (`curl.errors`).
"""

from huai_client.config.proxies import Proxy
from huai_client.config.tls import certificate_hint
from huai_client.metadata.curl import errors
from huai_client.metadata.curl.errors import CurlError
from huai_client.transfer.errors import (
    RETRY_HINT,
    ConnectionBrokenError,
    TransferError,
    UnreachableError,
    UpstreamRefusedError,
    UpstreamSilentError,
)
from huai_client.transfer.urls import ContentUrl

_KINDS = (
    (
        errors.NO_AUTHORITIES,
        UpstreamRefusedError,
        "check SSL_CERT_FILE and SSL_CERT_DIR, or install ca-certificates",
    ),
    (errors.NOT_HTTP, UpstreamRefusedError, "check the content URL: the response is not HTTP"),
    ({errors.NO_TLS}, ConnectionBrokenError, "check that the server there speaks TLS"),
    (errors.NO_HOST, UnreachableError, "check the content URL, and that its server is running"),
)


def failure_of(error: CurlError, url: ContentUrl, proxy: Proxy | None = None) -> TransferError:
    """Return the failure for `error` at `url`; `proxy`: the one that libcurl connects to."""
    number, reason = error.number, error.reason
    message = f"{url}: {reason} (libcurl {number})"
    if proxy is not None and (number in errors.NO_HOST or "CONNECT" in reason):
        return UnreachableError(f"{url}: {proxy}: {reason} (libcurl {number})", hint=proxy.hint)
    if number in errors.NOT_TRUSTED:
        return UpstreamRefusedError(message, hint=certificate_hint(reason))
    if number == errors.SILENT:
        return UpstreamSilentError(message, hint=RETRY_HINT)
    for numbers, kind, hint in _KINDS:
        if number in numbers:
            return kind(message, hint=hint)
    return ConnectionBrokenError(message, hint=RETRY_HINT)


def is_permanent(number: int) -> bool:
    """Return True if a retry at once is of no use after libcurl's error `number`."""
    return number in errors.NOT_TRUSTED | errors.NO_AUTHORITIES | errors.NOT_HTTP | errors.NO_HOST
