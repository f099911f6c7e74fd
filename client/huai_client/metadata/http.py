"""Requests to the upstream over HTTP, and the errors that they raise."""

import binascii
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from msgspec import Struct
from msgspec.structs import replace

from huai_client.config.allowed_addresses import AllowedAddresses
from huai_client.config.load import is_daemon
from huai_client.config.mirror import ListSettings, Mirror
from huai_client.config.tls import SYSTEM_TLS, TLS_HINT, TlsError, TlsFiles, certificate_hint
from huai_client.metadata.curl import errors
from huai_client.metadata.curl.errors import printable
from huai_client.metadata.curl.head import (
    REDIRECT_STATUSES,
    REDIRECTIONS_MOST,
    Head,
    RedirectionError,
    parse_http_date,
    redirect_target,
    retry_after,
)
from huai_client.run.options import NEVER, Deadline
from huai_program.urls import login_of, masked, same_service, service_of, split_url, without_login
from huai_schema.errors import ExitCode, HuaiError

if TYPE_CHECKING:
    from huai_client.metadata.curl.exchange import CurlRequest, Exchange

TIMEOUT_SECONDS = 30.0
_BAD_REQUEST = 400
_TEMPORARY = {408, 429}
"""Statuses of a request that took too long, and of too many requests."""
_GONE = {404, 410}
_GOOD = range(200, 300)
_UNCHANGED = 304
_LOGIN_REQUIRED = {401, 403}
_LOGIN = "Authorization"
_SERVER_ERROR = 500
"""The lowest status of an error of the server."""
_NOT_IMPLEMENTED = 501
"""Its answer to POST, if it has static files only: it will not change soon."""
_MALFORMED_URL = (ValueError, OverflowError)
"""Exceptions for a malformed URL; the latter for a port that is too large."""
_COPY_SECONDS = 5.0
"""Pause before an incomplete copy of static files is requested again."""
_REPOSITORY = re.compile(r"/git/([^/]+)\.git/?$")

LOGIN_HINT = "put a login into ~/.netrc, or into the URL in client.toml: https://USER:PASSWORD@HOST"
_INSIDE_HINT = "if that is intended, write the address that it leads to into client.toml"
_CERTIFICATE_ACCEPTED = (
    "the upstream accepts yours: tls = {certificate = FILE, key = FILE} in client.toml"
)


class UpstreamError(HuaiError):
    """The upstream cannot be reached, or its response is not valid."""

    exit_code = ExitCode.NETWORK


class UpstreamDownError(UpstreamError):
    """The upstream does not respond now, and may soon."""

    def __init__(self, message: str, *, hint: str = "", retry_after: float = 0) -> None:
        """`retry_after`: seconds to wait, as the upstream demands."""
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class UpstreamTimeoutError(UpstreamDownError):
    """The upstream does not respond in time."""

    exit_code = ExitCode.TIMEOUT


class IncompleteCopyError(UpstreamDownError):
    """A copy of static files has a new head, and not yet the files that it names."""

    def __init__(self, message: str) -> None:
        """Ask for a pause: the rest of the copy arrives in seconds."""
        super().__init__(
            message,
            hint="a copy may be in progress: sync again in a minute; if that does not help, copy "
            "it as SERVE.md says",
            retry_after=_COPY_SECONDS,
        )


class NotServedError(UpstreamError):
    """The upstream responds, but has no such module or no commit of it."""

    exit_code = ExitCode.UNKNOWN_MODULE


class RolledBackError(HuaiError):
    """The upstream offers an older state than it did before."""

    exit_code = ExitCode.ROLLED_BACK


class MetadataUrl(Struct, frozen=True):
    """The URL of a module's metadata repository."""

    url: str
    tls: TlsFiles = SYSTEM_TLS
    """Certificates configured for it."""
    configured: str = ""
    """The URL of client.toml, if a redirect led from there to `url`."""

    @classmethod
    def of(
        cls, url: str, module: str, tls: TlsFiles = SYSTEM_TLS, listing: ListSettings | None = None
    ) -> "MetadataUrl":
        """Return the URL of a repository or daemon, or of `module` of a huai server at `url`.

        `listing` has the settings for an upstream that is listed.
        """
        if is_daemon(url) or (listing is not None and (listing.source or listing.shell)):
            return ListedUrl(url, tls, settings=listing or ListSettings(module))
        if not is_http(url) or url.rstrip("/").endswith(".git"):
            return cls(url, tls)
        return cls(f"{url.rstrip('/')}/git/{module}.git", tls)

    @property
    def service(self) -> str:
        """Scheme, host and port, which all modules of a server share."""
        return service_of(self.url)

    @property
    def address(self) -> str:
        """The URL to request, without a login."""
        return without_login(self.url)

    @property
    def login(self) -> bytes:
        """USER:PASSWORD from the URL of client.toml, or for its host from .netrc; empty if missing.

        A redirect target gets no other login, and this one only at the scheme, host and port of
        that URL.  Raises `UpstreamError` for an unusable .netrc.
        """
        named_url = self.configured or self.url
        if not same_service(named_url, self.url):
            return b""
        login = login_of(named_url)
        return netrc_login(named_url) if login is None else unquote_to_bytes(login)

    def redirected(self, url: str) -> "MetadataUrl":
        """Return the URL after a redirect to `url`, without a login; keeps the configured one."""
        if url == self.address:
            return self
        return MetadataUrl(without_login(url), self.tls, self.configured or self.url)

    def __str__(self) -> str:
        """Return the URL for messages: `masked`."""
        return masked(self.url)


class ListedUrl(MetadataUrl, frozen=True, kw_only=True):
    """The URL of an upstream that is listed, because it has no metadata.

    Its rsync lists rsync://[USER@]HOST[:PORT]/MODULE[/PATH] or [USER@]HOST:PATH; the source in
    `settings` lists what is at any content URL.
    """

    settings: ListSettings


def metadata_urls(mirror: Mirror) -> list[MetadataUrl]:
    """Return the metadata URLs of a module, best first."""
    name, tls, listing = mirror.upstream_name, mirror.tls, mirror.listing
    return [MetadataUrl.of(url, name, tls, listing) for url in mirror.config.urls]


def is_http(url: str) -> bool:
    """Return True for a URL of HTTP; all URLs but these and those of daemons are for git."""
    return url[:8].lower().startswith(("http://", "https://"))


def server_and_module(url: str, name: str) -> tuple[str, str]:
    """Return the base URL of a huai server, without a slash at its end, and a module's name there.

    The name is `name`, unless `url` is that of the repository, SERVER/git/NAME.git.
    """
    match = _REPOSITORY.search(url)
    return (url[: match.start()], match[1]) if match else (url.rstrip("/"), name)


class Request(Struct, frozen=True):
    """A request to an upstream."""

    path: str
    """The path below the repository's URL, with a query if there is one."""
    body: bytes | None = None
    """Sent by POST, if there is a body."""
    content_type: str = ""
    headers: dict[str, str] = {}
    validator: str = ""
    """ETag for If-None-Match, or a date for If-Modified-Since.  A 304 raises `UnchangedError`."""


class UnchangedError(Exception):
    """The response has not changed since its validator was sent."""

    def __init__(self, clock: float | None) -> None:
        """`clock`: seconds since the epoch by the upstream's clock."""
        super().__init__()
        self.clock = clock


class _StatusError(Exception):
    def __init__(self, head: Head) -> None:
        super().__init__(head.status)
        self.head = head


class Response:
    """The response of an upstream, read as it arrives; `send` closes it."""

    def __init__(self, exchange: "Exchange", metadata: MetadataUrl) -> None:
        """Wait for the head of the response; `send` makes it."""
        self._exchange = exchange
        self._metadata = metadata
        head = exchange.head()
        self.url = exchange.url
        self.content_type = head.content_type
        self.clock = parse_http_date(head.fields.get("date", ""))
        self.etag = head.fields.get("etag", "")
        self.link = head.fields.get("link", "")
        self._modified = head.fields.get("last-modified", "")

    @property
    def validator(self) -> str:
        """The ETag, or a Last-Modified of an earlier second (RFC 9110, 8.8.2.2); or empty."""
        modified = parse_http_date(self._modified)
        is_strong = self.clock is not None and modified is not None and modified < self.clock
        return self.etag or (self._modified if is_strong else "")

    def renew(self) -> None:
        """Restart the timeout for the rest of the response, after one of several messages."""
        self._exchange.renew()

    def read_all(self, limit: int) -> bytes:
        """Read the body, at most its first `limit` bytes; raises as `read` does."""
        body = bytearray()
        while len(body) < limit and (data := self.read(limit - len(body))):
            body += data
        return bytes(body)

    def read(self, size: int) -> bytes:
        """Wait for at most `size` bytes of the body; empty at its end.  Raises as `send` does."""
        with _as_upstream_errors(self._metadata):
            return self._exchange.read(size)


@contextmanager
def send(
    metadata: MetadataUrl,
    request: Request,
    *,
    timeout: float = TIMEOUT_SECONDS,
    deadline: Deadline = NEVER,
) -> Iterator[Response]:
    """Send a request and yield its response.

    `timeout` limits, in seconds, each pause without data, and a response that trickles
    (`curl.exchange`); it never extends beyond the deadline.  Every failure is an `UpstreamError`,
    an `UpstreamDownError` if it is temporary, a `TlsError` or a `TimeUpError`; a response of 304
    is an `UnchangedError`.
    """
    with _as_upstream_errors(metadata):
        try:
            exchange = _follow_redirects(_make_request(metadata, request), timeout, deadline)
        except _StatusError as error:
            if request.validator and error.head.status == _UNCHANGED:
                raise UnchangedError(parse_http_date(error.head.fields.get("date", ""))) from error
            raise
    with exchange:
        yield Response(exchange, metadata)


def _follow_redirects(request: "CurlRequest", timeout: float, deadline: Deadline) -> "Exchange":
    """Return the exchange whose response ends the redirects, which the caller closes.

    Raises `_StatusError` for a status of an error, `RedirectionError` after too many redirects.
    """
    from huai_client.metadata.curl.exchange import Exchange  # loads libcurl

    allowed_addresses = request.allowed_addresses or AllowedAddresses((request.url,))
    for _ in range(REDIRECTIONS_MOST):
        exchange = Exchange(request, timeout=deadline.bound(timeout), deadline=deadline)
        try:
            head = exchange.head()
            if head.status in _GOOD:
                return exchange
        except BaseException:
            exchange.close()
            raise
        exchange.close()
        if head.status not in REDIRECT_STATUSES or request.body is not None:
            raise _StatusError(head)
        target = redirect_target(request.url, head.fields.get("location", ""))
        headers = {name: text for name, text in request.headers.items() if name != _LOGIN}
        request = replace(request, url=target, headers=headers, allowed_addresses=allowed_addresses)
    raise RedirectionError(f"more than {REDIRECTIONS_MOST} redirects")


@contextmanager
def _as_upstream_errors(metadata: MetadataUrl) -> Iterator[None]:
    """Raise failures of the block as `UpstreamError`, or one of its kinds, or as `TlsError`."""
    try:
        yield
    except _StatusError as error:
        raise _status_error(metadata, error.head) from error
    except errors.BrokenError as error:
        raise _connection_error(metadata, error) from error
    except TimeoutError as error:
        reason = str(error) or "no response in time"
        raise UpstreamTimeoutError(f"{metadata}: {reason}", hint="try again later") from error
    except (RedirectionError, *_MALFORMED_URL) as error:
        reason = printable(str(error))
        raise UpstreamError(f"{metadata}: {reason}", hint="check the URL") from error


def _make_request(metadata: MetadataUrl, request: Request) -> "CurlRequest":
    """Return libcurl's request, with the login for its URL.

    Raises `ValueError` if that is not of HTTP.
    """
    from huai_client.metadata.curl.exchange import CurlRequest  # loads libcurl

    headers = {**request.headers}
    if request.content_type:
        headers["Content-Type"] = request.content_type
    if request.validator:
        is_etag = request.validator.endswith('"')
        headers["If-None-Match" if is_etag else "If-Modified-Since"] = request.validator
    if login := metadata.login:
        headers[_LOGIN] = basic_auth(login)
    url = f"{metadata.address.rstrip('/')}/{request.path}"
    target = split_url(url)
    if target.scheme not in ("http", "https") or not target.hostname:
        raise ValueError("not an HTTP URL")
    allowed_addresses = AllowedAddresses((metadata.configured,)) if metadata.configured else None
    return CurlRequest(url, request.body, headers, metadata.tls, allowed_addresses)


def basic_auth(login: bytes) -> str:
    """Return USER:PASSWORD as the value of an Authorization header (RFC 7617)."""
    return f"Basic {binascii.b2a_base64(login, newline=False).decode()}"


def netrc_login(url: str) -> bytes:
    """Return USER:PASSWORD for the host, by NETRC or ~/.netrc; empty without a login.

    Raises `UpstreamError` if the file cannot be read or parsed.
    """
    path = os.environ.get("NETRC") or os.path.expanduser("~/.netrc")
    if not os.path.isfile(path):
        return b""
    import netrc  # rarely needed, and each poll passes here

    try:
        fields = netrc.netrc(path).authenticators(split_url(url).hostname or "")
    except (OSError, netrc.NetrcParseError, UnicodeError) as error:
        # The parser's message quotes the word at which it failed, which may be a password.
        line = f"line {error.lineno} " if isinstance(error, netrc.NetrcParseError) else "it "
        reason = getattr(error, "strerror", None) or f"{line}cannot be parsed"
        raise UpstreamError(
            f"{path}: {reason}", hint="repair it, or set NETRC to another file"
        ) from None
    return f"{fields[0]}:{fields[2]}".encode() if fields else b""


def _connection_error(metadata: MetadataUrl, error: errors.BrokenError) -> HuaiError:
    """Return the error for a connection that failed."""
    message, number = f"{metadata}: {_reason(metadata, error)}", error.number
    if error.refusal:
        message = f"{metadata}: a redirect leads into the local network: {error.refusal}"
        return UpstreamError(message, hint=_INSIDE_HINT)
    if error.proxy is not None and (number in errors.NO_HOST or "CONNECT" in error.reason):
        message = f"{metadata}: {error.proxy}: {error.reason}"
        return UpstreamDownError(message, hint=error.proxy.hint)
    if number in errors.ENDED_EARLY:
        return UpstreamDownError(f"{metadata}: the response ended early", hint="run again")
    permanent = number in errors.NOT_HTTP or (number in errors.NO_NAME and _has_no_name(metadata))
    kind = UpstreamError if permanent else UpstreamDownError
    hint = "check that the upstream is running, and the URL"
    if metadata.tls.at(metadata.url).certificate:
        hint = f"check the URL, and that {_CERTIFICATE_ACCEPTED}"
    return _tls_error(metadata, error) or kind(message, hint=hint)


def _tls_error(metadata: MetadataUrl, error: errors.BrokenError) -> HuaiError | None:
    """Return the error of an untrusted connection, or None for any other failure."""
    message, number = f"{metadata}: {_reason(metadata, error)}", error.number
    if number in errors.NOT_TRUSTED:
        return UpstreamError(message, hint=certificate_hint(error.reason))
    if number == errors.OWN_CERTIFICATE or number in errors.NO_AUTHORITIES:
        return TlsError(message, hint=TLS_HINT)
    if number == errors.NO_TLS and "wrong version" in error.reason:
        plain = f"http://{str(metadata).partition('://')[2]}"
        return UpstreamError(
            f"{metadata}: the server there does not speak TLS", hint=f"did you mean {plain}?"
        )
    return None


def _reason(metadata: MetadataUrl, error: errors.BrokenError) -> str:
    """Return libcurl's message, without a host that the masked URL does not show.

    In a malformed URL that may be a part of the password.
    """
    host = split_url(metadata.url).hostname or ""
    if not host or host in str(metadata).lower():
        return error.reason
    return re.sub(re.escape(host), "HOST", error.reason, flags=re.IGNORECASE)


def _has_no_name(metadata: MetadataUrl) -> bool:
    """Return True if the host has no address, False if it has one or no name server responds."""
    try:
        socket.getaddrinfo(split_url(metadata.url).hostname, None)
    except socket.gaierror as error:
        return error.errno != socket.EAI_AGAIN
    except (OSError, *_MALFORMED_URL):
        pass
    return False


def _status_error(metadata: MetadataUrl, head: Head) -> UpstreamError:
    """Return the error for the status of `head`, which is neither 2xx nor followed."""
    if head.status in _GONE:
        return NotServedError(
            f"{metadata}: the upstream has no such module",
            hint="check the URL and the module's name",
        )
    message = f"{metadata}: HTTP {head.status} {printable(head.reason)}"
    if head.status in _LOGIN_REQUIRED:
        return UpstreamError(message, hint=LOGIN_HINT)
    is_down = head.status >= _SERVER_ERROR and head.status != _NOT_IMPLEMENTED
    if head.status in _TEMPORARY or is_down:
        after = retry_after(head.fields.get("retry-after"), time.time())
        return UpstreamDownError(message, hint="try again later", retry_after=after)
    if head.status == _BAD_REQUEST and metadata.url.lower().startswith("https:"):
        # nginx's status for a missing client certificate.
        return UpstreamError(
            message, hint=f"if it requires certificates, check that {_CERTIFICATE_ACCEPTED}"
        )
    return UpstreamError(message, hint="try again later")
