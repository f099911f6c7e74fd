"""Asking the upstream over HTTP, and what its failures mean."""

import binascii
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes

from huai_client.config.reach import Reach
from huai_client.config.tls import SYSTEM_TLS, TLS_HINT, TlsError, TlsFiles, certificate_hint
from huai_client.metadata.curl import errors
from huai_client.metadata.curl.errors import printable
from huai_client.metadata.curl.head import Head, moment, retry_after
from huai_client.metadata.curl.redirection import (
    ELSEWHERE,
    REDIRECTIONS_MOST,
    RedirectionError,
    redirected,
)
from huai_client.run.deadline import NEVER, Deadline
from huai_program.urls import (
    login_of,
    masked,
    same_service,
    service_of,
    split_url,
    without_login,
)
from huai_schema.errors import ExitCode, HuaiError

if TYPE_CHECKING:
    from huai_client.metadata.curl.exchange import Exchange, Request

TIMEOUT_SECONDS = 30.0
_BAD_REQUEST = 400
_PASSING = {408, 429}
"""Statuses: of a request that took too long, of too many of them."""
_GONE = {404, 410}
_GOOD = range(200, 300)
_UNCHANGED = 304
_LOGIN_WANTED = {401, 403}
_LOGIN = "Authorization"
_OF_THE_SERVER = 500
"""From this status on it is the server that failed."""
_NO_ADDRESS = (ValueError, OverflowError)
"""What is raised for an address that is none; the latter for a port beyond all numbers."""
_COPY_SECONDS = 5.0
"""Until a copy of static files is asked again for what it did not have."""
_REPOSITORY = re.compile(r"/git/([^/]+)\.git/?$")

LOGIN_HINT = "a login stands in ~/.netrc, or in the URL in client.toml: https://USER:PASSWORD@HOST"
_INSIDE_HINT = "if that is meant, write the address that it leads to into client.toml"
_CERTIFICATE_TAKEN = (
    "the upstream accepts yours: tls = {certificate = FILE, key = FILE} in client.toml"
)


class UpstreamError(HuaiError):
    """The upstream cannot be asked, or its answer is not valid."""

    exit_code = ExitCode.NETWORK


class UpstreamDownError(UpstreamError):
    """The upstream does not answer now, and may soon."""

    def __init__(self, message: str, *, hint: str = "", retry_after: float = 0) -> None:
        """`retry_after`: seconds that the upstream asks to be left alone for."""
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class UpstreamTimeoutError(UpstreamDownError):
    """The upstream does not answer in time."""

    exit_code = ExitCode.TIMEOUT


class IncompleteCopyError(UpstreamDownError):
    """A copy of static files has a new head, and not yet the files that the head names."""

    def __init__(self, message: str) -> None:
        """Ask for a pause: the rest of the copy arrives in seconds."""
        super().__init__(
            message,
            hint="it may be copied just now: sync again in a minute; if that does not help, copy "
            "it as STATIC.md says",
            retry_after=_COPY_SECONDS,
        )


class NotServedError(UpstreamError):
    """The upstream is there, and has no such module or no commit of it."""

    exit_code = ExitCode.UNKNOWN_MODULE


class MetadataUrl(NamedTuple):
    """Where a module's metadata repository is."""

    url: str
    tls: TlsFiles = SYSTEM_TLS
    """Own certificates for it."""
    named: str = ""
    """The URL of client.toml, after a redirection led from there to `url`."""

    @classmethod
    def of(cls, url: str, module: str, tls: TlsFiles = SYSTEM_TLS) -> "MetadataUrl":
        """The repository itself, or the base address of a huai server that has `module`."""
        if not is_http(url) or url.rstrip("/").endswith(".git"):
            return cls(url, tls)
        return cls(f"{url.rstrip('/')}/git/{module}.git", tls)

    @property
    def service(self) -> str:
        """What has to answer there, whichever module it is asked for."""
        return service_of(self.url)

    @property
    def address(self) -> str:
        """The URL to request, without a login."""
        return without_login(self.url)

    @property
    def login(self) -> bytes:
        """USER:PASSWORD: of the URL of client.toml, or of its host in .netrc; empty if none.

        A redirection never gets any other one, and this one only at scheme, host and port of that
        URL.
        """
        named = self.named or self.url
        if not same_service(named, self.url):
            return b""
        given = login_of(named)
        return kept_login(named) if given is None else unquote_to_bytes(given)

    def redirected(self, url: str) -> "MetadataUrl":
        """Return the repository at `url`, where a redirection led."""
        if url == self.address:
            return self
        return MetadataUrl(without_login(url), self.tls, self.named or self.url)

    def __str__(self) -> str:
        """For people."""
        return masked(self.url)


def is_http(url: str) -> bool:
    """Return True for a URL of HTTP; git alone asks at any other."""
    return url[:8].lower().startswith(("http://", "https://"))


def server_and_module(url: str, name: str) -> tuple[str, str]:
    """The base address of a huai server, and what it calls the module.

    That is `name`, unless `url` is the address of the repository itself.
    """
    found = _REPOSITORY.search(url)
    return (url[: found.start()], found[1]) if found else (url.rstrip("/"), name)


class Question(NamedTuple):
    """What an upstream is asked."""

    what: str
    """An address below the repository's."""
    body: bytes | None = None
    """Sent by POST, if there is one."""
    content_type: str = ""
    unless: str = ""
    """An ETag: whoever has still that may say so alone (`UnchangedError`); empty: none."""


class UnchangedError(Exception):
    """What was asked for is as it was."""

    def __init__(self, clock: float | None) -> None:
        """`clock`: what the upstream's said, seconds since the epoch."""
        super().__init__()
        self.clock = clock


class _StatusError(Exception):
    """The response is not what was asked for; `head` says why."""

    def __init__(self, head: Head) -> None:
        super().__init__(head.status)
        self.head = head


class Answer:
    """What the upstream says, as it comes."""

    def __init__(self, exchange: "Exchange", metadata: MetadataUrl) -> None:
        """Made by `ask`, when the head is here."""
        self._exchange = exchange
        self._metadata = metadata
        head = exchange.head()
        self.url = exchange.url
        self.content_type = head.content_type
        self.clock = moment(head.fields.get("date", ""))
        self.etag = head.fields.get("etag", "")

    def renew(self) -> None:
        """Give what is still to come the time of a new answer: it is one message after another."""
        self._exchange.renew()

    def whole(self, limit: int) -> bytes:
        """All of it, up to `limit` bytes."""
        found = bytearray()
        while len(found) < limit and (data := self.read(limit - len(found))):
            found += data
        return bytes(found)

    def read(self, size: int) -> bytes:
        """At most `size` bytes, as soon as there are any; none at the end."""
        with _failures(self._metadata):
            return self._exchange.read(size)


@contextmanager
def ask(
    metadata: MetadataUrl,
    question: Question,
    *,
    timeout: float = TIMEOUT_SECONDS,
    deadline: Deadline = NEVER,
) -> Iterator[Answer]:
    """Ask a question.

    `timeout` bounds, in seconds, each pause in which nothing comes, and an answer that trickles
    (`curl.exchange`); at the deadline it is over anyway.  Every failure is an `UpstreamError`, an
    `UpstreamDownError` if it may pass, a `TlsError` or a `TimeUpError`; an answer that nothing
    changed is an `UnchangedError`.
    """
    with _failures(metadata):
        try:
            exchange = _followed(_request(metadata, question), timeout, deadline)
        except _StatusError as error:
            if question.unless and error.head.status == _UNCHANGED:
                raise UnchangedError(moment(error.head.fields.get("date", ""))) from error
            raise
    with exchange:
        yield Answer(exchange, metadata)


def _sent(request: "Request", timeout: float, deadline: Deadline) -> "Exchange":
    from huai_client.metadata.curl.exchange import Exchange  # loads libcurl

    return Exchange(request, timeout=deadline.bound(timeout), deadline=deadline)


def _followed(request: "Request", timeout: float, deadline: Deadline) -> "Exchange":
    """Return the exchange with the head that a few redirections lead to; `_StatusError`."""
    reach = request.reach or Reach((request.url,))
    for _ in range(REDIRECTIONS_MOST):
        exchange = _sent(request, timeout, deadline)
        try:
            head = exchange.head()
            if head.status in _GOOD:
                return exchange
        except BaseException:
            exchange.close()
            raise
        exchange.close()
        if head.status not in ELSEWHERE or request.body is not None:
            raise _StatusError(head)
        target = redirected(request.url, head.fields.get("location", ""))
        headers = {name: text for name, text in request.headers.items() if name != _LOGIN}
        request = request._replace(url=target, headers=headers, reach=reach)
    raise RedirectionError(f"more than {REDIRECTIONS_MOST} redirections")


@contextmanager
def _failures(metadata: MetadataUrl) -> Iterator[None]:
    """What goes wrong inside as an `UpstreamError`."""
    try:
        yield
    except _StatusError as error:
        raise _refused(metadata, error.head) from error
    except errors.BrokenError as error:
        raise _broken(metadata, error) from error
    except TimeoutError as error:
        said = str(error) or "no answer in time"
        raise UpstreamTimeoutError(f"{metadata}: {said}", hint="try again later") from error
    except (RedirectionError, *_NO_ADDRESS) as error:
        said = printable(str(error))
        raise UpstreamError(f"{metadata}: {said}", hint="check the URL") from error


def _request(metadata: MetadataUrl, question: Question) -> "Request":
    """The question; whoever the upstream redirects to has no business with the login."""
    from huai_client.metadata.curl.exchange import Request  # loads libcurl

    headers = {}
    if question.content_type:
        headers["Content-Type"] = question.content_type
    if question.unless:
        headers["If-None-Match"] = question.unless
    if given := metadata.login:
        headers[_LOGIN] = basic(given)
    url = f"{metadata.address.rstrip('/')}/{question.what}"
    target = split_url(url)
    if target.scheme not in ("http", "https") or not target.hostname:
        raise ValueError("not an address of HTTP")
    reach = Reach((metadata.named,)) if metadata.named else None
    return Request(url, question.body, headers, metadata.tls, reach)


def basic(login: bytes) -> str:
    """USER:PASSWORD as RFC 7617 has it."""
    return f"Basic {binascii.b2a_base64(login, newline=False).decode()}"


def kept_login(url: str) -> bytes:
    """USER:PASSWORD for a host, from the file that NETRC names or ~/.netrc; empty: none."""
    path = os.environ.get("NETRC") or os.path.expanduser("~/.netrc")
    if not os.path.isfile(path):
        return b""
    import netrc  # few have that file, and each poll passes here

    try:
        found = netrc.netrc(path).authenticators(split_url(url).hostname or "")
    except (OSError, netrc.NetrcParseError, UnicodeError) as error:
        # What the parser says quotes the word that it stumbled on, which may be a password.
        line = f"line {error.lineno} " if isinstance(error, netrc.NetrcParseError) else "it "
        reason = getattr(error, "strerror", None) or f"{line}is not understood"
        raise UpstreamError(
            f"{path}: {reason}", hint="repair it, or let NETRC name another file"
        ) from None
    return f"{found[0]}:{found[2]}".encode() if found else b""


def _broken(metadata: MetadataUrl, error: errors.BrokenError) -> HuaiError:
    said, number = f"{metadata}: {_reason(metadata, error)}", error.number
    if error.refusal:
        said = f"{metadata}: a redirection leads inside: {error.refusal}"
        return UpstreamError(said, hint=_INSIDE_HINT)
    if error.proxy is not None and (number in errors.NO_HOST or "CONNECT" in error.reason):
        said = f"{metadata}: {error.proxy}: {error.reason}"
        return UpstreamDownError(said, hint=error.proxy.hint)
    if number in errors.ENDED_EARLY:
        return UpstreamDownError(f"{metadata}: the answer ended early", hint="run again")
    lasting = number in errors.NOT_HTTP or (number in errors.NO_NAME and _has_no_name(metadata))
    kind = UpstreamError if lasting else UpstreamDownError
    hint = "check that the upstream is running, and the URL"
    if metadata.tls.at(metadata.url).certificate:
        hint = f"check the URL, and that {_CERTIFICATE_TAKEN}"
    return _insecure(metadata, error) or kind(said, hint=hint)


def _insecure(metadata: MetadataUrl, error: errors.BrokenError) -> HuaiError | None:
    """The error of a connection that is not to be trusted; None: it is another one."""
    said, number = f"{metadata}: {_reason(metadata, error)}", error.number
    if number in errors.NOT_TRUSTED:
        return UpstreamError(said, hint=certificate_hint(error.reason))
    if number == errors.OWN_CERTIFICATE or number in errors.NO_AUTHORITIES:
        return TlsError(said, hint=TLS_HINT)
    if number == errors.NO_TLS and "wrong version" in error.reason:
        plain = f"http://{str(metadata).partition('://')[2]}"
        return UpstreamError(
            f"{metadata}: what answers there does not speak TLS", hint=f"did you mean {plain}?"
        )
    return None


def _reason(metadata: MetadataUrl, error: errors.BrokenError) -> str:
    """Return libcurl's message, without a host that the URL for people does not show.

    In a malformed URL that may be a part of the password.
    """
    host = split_url(metadata.url).hostname or ""
    if not host or host in str(metadata).lower():
        return error.reason
    return re.sub(re.escape(host), "HOST", error.reason, flags=re.IGNORECASE)


def _has_no_name(metadata: MetadataUrl) -> bool:
    """Return True if the host has no address, False if no name server answers now."""
    try:
        socket.getaddrinfo(split_url(metadata.url).hostname, None)
    except socket.gaierror as error:
        return error.errno != socket.EAI_AGAIN
    except (OSError, *_NO_ADDRESS):
        pass
    return False


def _refused(metadata: MetadataUrl, head: Head) -> UpstreamError:
    if head.status in _GONE:
        return NotServedError(
            f"{metadata}: the upstream has no such module",
            hint="look at the URL and the module's name",
        )
    said = f"{metadata}: HTTP {head.status} {printable(head.reason)}"
    if head.status in _LOGIN_WANTED:
        return UpstreamError(said, hint=LOGIN_HINT)
    if head.status in _PASSING or head.status >= _OF_THE_SERVER:
        after = retry_after(head.fields.get("retry-after"), time.time())
        return UpstreamDownError(said, hint="try again later", retry_after=after)
    if head.status == _BAD_REQUEST and metadata.url.lower().startswith("https:"):
        # As nginx says it.
        return UpstreamError(
            said, hint=f"if it asks for certificates, check that {_CERTIFICATE_TAKEN}"
        )
    return UpstreamError(said, hint="try again later")
