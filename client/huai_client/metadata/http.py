"""Asking the upstream over HTTP, and what its failures mean."""

import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from huai_client.config.proxies import ProxyError
from huai_client.config.reach import Reach
from huai_client.config.tls import SYSTEM_TLS, TlsFiles, certificate_hint
from huai_client.metadata.http_answer import AnswerError, Head
from huai_client.metadata.http_connection import (
    InternalAddressError,
    NotTlsError,
    NotTrustedError,
    basic,
)
from huai_client.metadata.http_line import Line, SlowError
from huai_client.metadata.slow_http import Request, Response, Sent, StatusError, good, open_url
from huai_client.run.deadline import NEVER, Deadline
from huai_program.quoting import quoted
from huai_program.urls import (
    login_of,
    masked,
    same_service,
    service_of,
    split_url,
    without_login,
)
from huai_schema import __version__
from huai_schema.errors import ExitCode, HuaiError

TIMEOUT_SECONDS = 30.0
_BAD_REQUEST = 400
_PASSING = {408, 429}
"""Statuses: of a request that took too long, of too many of them."""
_GONE = {404, 410}
_UNCHANGED = 304
_LOGIN_WANTED = {401, 403}
_OF_THE_SERVER = 500
"""From this status on it is the server that failed."""
_NO_ADDRESS = (ValueError, OverflowError)
"""What is raised for an address that is none; the latter for a port beyond all numbers."""
_TALK = 300
_COPY_SECONDS = 5.0
"""Until a copy of static files is asked again for what it did not have."""
_DATE = re.compile(
    "[A-Z][a-z]{2}, ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_REPOSITORY = re.compile(r"/git/([^/]+)\.git/?$")

_LOGIN_HINT = "a login stands in ~/.netrc, or in the URL in client.toml: https://USER:PASSWORD@HOST"
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


def printable(text: str) -> str:
    """What an upstream says, without anything that a terminal would obey."""
    return quoted(" ".join(text[:_TALK].split()))


def is_http(url: str) -> bool:
    """Whether `newest_commit` can ask there."""
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
    stay: bool = False
    """Whether another one may follow on the same connection."""
    unless: str = ""
    """An ETag: whoever has still that may say so alone (`UnchangedError`); empty: none."""


class UnchangedError(Exception):
    """What was asked for is as it was."""

    def __init__(self, clock: float | None) -> None:
        """`clock`: what the upstream's said, seconds since the epoch."""
        super().__init__()
        self.clock = clock


class Answer:
    """What the upstream says, as it comes."""

    def __init__(self, response: Response, metadata: MetadataUrl) -> None:
        """Made by `ask`."""
        self._response = response
        self._metadata = metadata
        self.url = response.url
        self.content_type = response.head.content_type
        self.clock = moment(response.head.headers.get("date", ""))
        self.etag = response.head.headers.get("etag", "")
        self.offers_files = "huai-static" in response.head.headers
        """Whether it says that there are static files."""
        self.content_urls = response.head.headers.get("huai-content", "")
        """Where a relay has the content: URLs, with blanks between them."""

    def release(self) -> Line | None:
        """The connection, after the end of the answer; None if it does not stay open."""
        return self._response.release()

    def renew(self) -> None:
        """Give what is still to come the time of a new answer: it is one message after another."""
        self._response.renew()

    def whole(self, limit: int) -> bytes:
        """All of it, up to `limit` bytes."""
        found = bytearray()
        while len(found) < limit and (data := self.read(limit - len(found))):
            found += data
        return bytes(found)

    def read(self, size: int) -> bytes:
        """At most `size` bytes, as soon as there are any; none at the end."""
        with _failures(self._metadata):
            return self._response.read(size)


class Asked:
    """A question that was sent, and whose answer is read later."""

    def __init__(
        self,
        metadata: MetadataUrl,
        question: Question,
        *,
        timeout: float,
        deadline: Deadline = NEVER,
        line: Line | None = None,
    ) -> None:
        """As `ask`, but follows no redirection; on `line`, if that is a connection to there."""
        self.metadata = metadata
        with _failures(metadata):
            request = _request(metadata, question)
            self._sent = Sent(request, timeout=timeout, deadline=deadline, line=line)

    @contextmanager
    def answer(self) -> Iterator[Answer]:
        """What comes."""
        with _failures(self.metadata):
            response = good(self._sent.response())
        with response:
            yield Answer(response, self.metadata)


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
    (`http_line.MinimumRate`); at the deadline it is over anyway.  Every failure is an
    `UpstreamError`, an `UpstreamDownError` if it may pass, or a `TimeUpError`; an answer that
    nothing changed is an `UnchangedError`.
    """
    with _failures(metadata):
        try:
            response = open_url(_request(metadata, question), timeout=timeout, deadline=deadline)
        except StatusError as error:
            if question.unless and error.head.status == _UNCHANGED:
                raise UnchangedError(moment(error.head.headers.get("date", ""))) from error
            raise
    with response:
        yield Answer(response, metadata)


@contextmanager
def _failures(metadata: MetadataUrl) -> Iterator[None]:
    """What goes wrong inside as an `UpstreamError`."""
    try:
        yield
    except StatusError as error:
        raise _refused(metadata, error.head) from error
    except (OSError, AnswerError, *_NO_ADDRESS) as error:
        raise _broken(metadata, error) from error


def _request(metadata: MetadataUrl, question: Question) -> Request:
    """The question; whoever the upstream redirects to has no business with the login."""
    headers = {"User-Agent": f"huai-client/{__version__}"}
    if question.content_type:
        headers["Content-Type"] = question.content_type
    if question.unless:
        headers["If-None-Match"] = question.unless
    url = f"{metadata.address.rstrip('/')}/{question.what}"
    login = basic(given) if (given := metadata.login) else ""
    reach = Reach((metadata.named,)) if metadata.named else None
    return Request(url, question.body, headers, login, question.stay, metadata.tls, reach)


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


def _broken(metadata: MetadataUrl, error: Exception) -> UpstreamError:
    if isinstance(error, SlowError):
        return UpstreamTimeoutError(f"{metadata}: {error}", hint="try again later")
    if isinstance(error, TimeoutError):
        return UpstreamTimeoutError(f"{metadata}: no answer in time", hint="try again later")
    return _unreachable(metadata, error)


def _unreachable(metadata: MetadataUrl, error: Exception) -> UpstreamError:
    if isinstance(error, InternalAddressError):
        return UpstreamError(f"{metadata}: a redirection leads inside: {error}", hint=_INSIDE_HINT)
    if isinstance(error, NotTlsError):
        plain = f"http://{str(metadata).partition('://')[2]}"
        return UpstreamError(
            f"{metadata}: what answers there does not speak TLS", hint=f"did you mean {plain}?"
        )
    if isinstance(error, NotTrustedError):
        said = printable(str(error))
        return UpstreamError(f"{metadata}: {said}", hint=certificate_hint(said))
    if isinstance(error, ProxyError):
        return UpstreamDownError(f"{metadata}: {printable(str(error))}", hint=error.proxy.hint)
    unknown_name = isinstance(error, socket.gaierror) and error.errno != socket.EAI_AGAIN
    lasting = unknown_name or isinstance(error, _NO_ADDRESS)
    kind = UpstreamError if lasting else UpstreamDownError
    said = f"{metadata}: {printable(str(error))}"
    if metadata.tls.at(metadata.url).certificate:
        return kind(said, hint=f"check the URL, and that {_CERTIFICATE_TAKEN}")
    return kind(said, hint="check that the upstream is running, and the URL")


def _refused(metadata: MetadataUrl, head: Head) -> UpstreamError:
    if head.status in _GONE:
        return NotServedError(
            f"{metadata}: the upstream has no such module",
            hint="look at the URL and the module's name",
        )
    said = f"{metadata}: HTTP {head.status} {printable(head.reason)}"
    if head.status in _LOGIN_WANTED:
        return UpstreamError(said, hint=_LOGIN_HINT)
    if head.status in _PASSING or head.status >= _OF_THE_SERVER:
        after = retry_after(head.headers.get("retry-after"), time.time())
        return UpstreamDownError(said, hint="try again later", retry_after=after)
    if head.status == _BAD_REQUEST and metadata.url.lower().startswith("https:"):
        # As nginx says it.
        return UpstreamError(
            said, hint=f"if it asks for certificates, check that {_CERTIFICATE_TAKEN}"
        )
    return UpstreamError(said, hint="try again later")


def retry_after(text: str | None, now: float) -> float:
    """Seconds from `now` (s since the epoch) to what a Retry-After says (RFC 9110, 10.2.3)."""
    if text is None:
        return 0
    if re.fullmatch("[0-9]{1,9}", text.strip()):
        return float(text.strip())
    until = moment(text)
    return 0 if until is None else max(0.0, until - now)


def moment(text: str) -> float | None:
    """Seconds since the epoch of an HTTP date (RFC 9110, 5.6.7); None if it is not one."""
    try:
        usual = _DATE.fullmatch(text)
        if usual:
            month = _MONTHS.index(usual[2]) + 1
            day, year, hour, minute, second = (int(usual[number]) for number in (1, 3, 4, 5, 6))
            return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
        import email.utils  # the obsolete forms, which nobody sends: it takes long to load

        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
