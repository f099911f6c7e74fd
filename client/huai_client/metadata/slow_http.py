"""HTTP that waits for nothing without an end: a question, and its answer as it comes.

A client of its own, because every read has to be watched: how long it takes, and how much comes.

Rules:

- How long an answer may take is what `http_line` says.
- A redirection is followed for questions without a body, a few times, to HTTP alone, never from
  https to http; its own body is not read.  Other protocols are not spoken at all.
- Only what changes nothing on the other side is asked: what got no answer because the other side
  had closed a connection is asked again.
"""

import io
import re
import socket
from typing import NamedTuple, Self

from huai_client.config.proxies import ProxyError
from huai_client.config.reach import Reach
from huai_client.config.tls import SYSTEM_TLS, TlsFiles
from huai_client.metadata.http_answer import AnswerError, Body, Head, read_head
from huai_client.metadata.http_connection import Route, host_and_port, port_of, secured
from huai_client.metadata.http_line import LATE, Line, MinimumRate
from huai_client.run.deadline import Deadline

_REDIRECTIONS = 5
_ELSEWHERE = (301, 302, 303, 307, 308)
_GOOD = range(200, 300)
_NOT_SENT = re.compile(r"[\0-\x20\x7f]")


class StatusError(Exception):
    """The answer is that there is none."""

    def __init__(self, head: Head) -> None:
        """`head` says why."""
        super().__init__(head.status)
        self.head = head


class Request(NamedTuple):
    """A question."""

    url: str
    body: bytes | None
    """Sent by POST, if there is one."""
    headers: dict[str, str]
    login: str = ""
    """The value of a header for this host alone; empty: none."""
    stay: bool = False
    """Whether another question may follow on the same connection."""
    tls: TlsFiles = SYSTEM_TLS
    """Own certificates, for the hosts that they name."""
    reach: Reach | None = None
    """The addresses that a URL may lead to which client.toml does not name; None: any."""


class Response:
    """An answer; to be closed, as a context manager."""

    def __init__(self, url: str, line: Line) -> None:
        """Read its head; `line` is closed with it, also if that fails."""
        self.url = url
        self._line: Line | None = line
        try:
            self.head = read_head(line.stream)
            self._body = Body(self.head, line.stream)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """Nothing yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Whatever of it is still to come."""
        if self._line is not None:
            self._line.close()

    def release(self) -> Line | None:
        """The connection for another question; None if it does not stay."""
        if not (self.head.stays and self._body.complete):
            return None
        line, self._line = self._line, None
        return line

    def renew(self) -> None:
        """Give what is still to come the time of a new answer."""
        if self._line is not None:
            self._line.renew()

    def read(self, size: int) -> bytes:
        """Some of the body, which is what earns more time."""
        data = self._body.read(size)
        if self._line is not None:
            self._line.earn(len(data))
        return data


class Sent:
    """A question that is on its way; whoever lets go of it does not want the answer."""

    def __init__(
        self, request: Request, *, timeout: float, deadline: Deadline, line: Line | None = None
    ) -> None:
        """`line`: a connection that stayed open, which is taken if it leads there."""
        self._request = request
        self._route = Route.of(request.url, request.tls)
        self._data = _encode(request, self._route)
        self._timeout = deadline.bound(timeout)
        self._deadline = deadline
        self._line = (self._follow(line) if line else None) or self._begin()
        self._follows = self._line is line

    def response(self) -> Response:
        """The answer, whatever it is."""
        try:
            return Response(self._request.url, self._line)
        except (AnswerError, ConnectionError):
            if not (self._follows and self._line.silent):
                raise
        return Response(self._request.url, self._begin())

    def _follow(self, line: Line) -> Line | None:
        """Ask on a connection that stayed; None if it does not lead there, or not any more."""
        if line.leads(self._route):
            try:
                line.send(self._data, self._timeout, self._deadline)
            except OSError:
                pass
            else:
                return line
        line.close()
        return None

    def _begin(self) -> Line:
        route, timeout = self._route, self._timeout
        sock = route.connect(timeout, self._request.reach)
        try:
            if route.tunnels:
                _tunnel(route, sock, timeout, self._deadline)
            if route.secured_host:
                sock = secured(sock, route.secured_host, route.certificates)
            line = Line(sock, route)
            line.send(self._data, timeout, self._deadline)
        except BaseException:
            sock.close()
            raise
        return line


def open_url(request: Request, *, timeout: float, deadline: Deadline) -> Response:
    """The answer to `request`, over proxies and after redirections as the rules say.

    Raises `StatusError`, `AnswerError`, an `OSError`, or a `ValueError` for an address that is
    none.
    """
    reach = request.reach or Reach((request.url,))
    for _ in range(_REDIRECTIONS):
        response = Sent(request, timeout=timeout, deadline=deadline).response()
        if response.head.status in _GOOD:
            return response
        response.close()
        target = redirection(request, response.head)
        if target is None:
            raise StatusError(response.head)
        deadline.check(LATE)
        request = request._replace(url=target, login="", reach=reach)
    raise OSError(f"more than {_REDIRECTIONS} redirections")


def good(response: Response) -> Response:
    """The answer to a question that no redirection is followed for; `StatusError`."""
    if response.head.status in _GOOD:
        return response
    response.close()
    raise StatusError(response.head)


def redirection(request: Request, head: Head) -> str | None:
    """Where a redirection leads; None if it is not one, or is not followed."""
    location = head.headers.get("location")
    if head.status not in _ELSEWHERE or not location or request.body is not None:
        return None
    from urllib.parse import quote, urljoin, urlsplit

    target = urljoin(request.url, location)
    scheme = urlsplit(target).scheme
    allowed = ("https",) if urlsplit(request.url).scheme == "https" else ("http", "https")
    return quote(target, safe="!#$%&'()*+,/:;=?@[]~") if scheme in allowed else None


def _encode(request: Request, route: Route) -> bytes:
    """What is sent; `ValueError` for an address that cannot be."""
    headers = {
        "Host": host_and_port(route.url),
        "Accept-Encoding": "identity",
        **request.headers,
    }
    if not request.stay:
        headers["Connection"] = "close"
    if request.body is not None:
        headers["Content-Length"] = str(len(request.body))
    if request.login:
        headers["Authorization"] = request.login
    if route.proxy_login and not route.tunnels:
        headers["Proxy-Authorization"] = route.proxy_login
    method = "GET" if request.body is None else "POST"
    return _lines(f"{method} {_checked(route.target)} HTTP/1.1", headers) + (request.body or b"")


def _tunnel(route: Route, sock: socket.socket, timeout: float, deadline: Deadline) -> None:
    """Let the proxy pass on what comes and goes from now on."""
    host = route.url.hostname or ""
    place = f"[{host}]" if ":" in host else host
    place = _checked(f"{place}:{port_of(route.url)}")
    headers = {"Host": place}
    if route.proxy_login:
        headers["Proxy-Authorization"] = route.proxy_login
    rated = MinimumRate(sock)
    rated.begin(timeout, deadline)
    sock.sendall(_lines(f"CONNECT {place} HTTP/1.1", headers))
    # The other side of a tunnel says nothing unasked: the buffer takes nothing of that.
    head = read_head(io.BufferedReader(rated))
    if head.status not in _GOOD:
        said = f"it refuses: {head.status} {head.reason}"
        raise ProxyError(route.proxy, said) if route.proxy else OSError(said)


def _lines(first: str, headers: dict[str, str]) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("ascii")


def _checked(text: str) -> str:
    if _NOT_SENT.search(text):
        raise ValueError("the address has blanks or control characters in it")
    return text
