"""HTTP that waits for nothing without an end: a question, and its answer as it comes.

A client of its own, because the one of the standard library takes longer to load than the rest of
a sync that finds nothing new, and because every read has to be watched.

Rules, from the moment a question is sent:

- Its answer has the request's timeout, and a second more for each `MINIMUM_RATE` bytes of its body
that
  were handed over.  What else comes (interim answers, headers, trailers) earns no time.
- The timeout is for each time that nothing comes, too.
- At the deadline, and after `LONGEST`, it is over however fast it comes.
- A redirection is followed for questions without a body, a few times, to HTTP alone, never from
  https to http; its own body is not read.  Other protocols are not spoken at all.
"""

import io
import re
import socket
import time
from typing import Any, NamedTuple, Self

from huai_client.deadline import Deadline
from huai_client.metadata.http_answer import Body, Head, read_head
from huai_client.metadata.http_connection import Route, host_and_port, port_of, secured

MINIMUM_RATE = 1024
"""Bytes a second that an upstream has to send on average."""
LONGEST = 86_400.0
"""Seconds that one answer may take."""
_REDIRECTIONS = 5
_ELSEWHERE = (301, 302, 303, 307, 308)
_GOOD = range(200, 300)
_NOT_SENT = re.compile(r"[\0-\x20\x7f]")
_LATE = "the metadata did not come in time, and nothing was changed"


class SlowError(TimeoutError):
    """Something comes, and too little."""


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


class _MinimumRate(io.RawIOBase):
    """A socket's stream, read only while it sends at least `MINIMUM_RATE`."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._raw = sock.makefile("rb", buffering=0)
        self._sock = sock
        self._deadline = deadline
        self._patience = sock.gettimeout() or LONGEST
        self._began = time.monotonic()
        self.handed = 0
        """Bytes of the body that somebody has taken."""

    def readable(self) -> bool:
        """As `BufferedReader` asks."""
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        """What comes next; `SlowError` if that took too long, `TimeUpError` at the deadline."""
        taken = time.monotonic() - self._began
        if taken > min(self._patience + self.handed / MINIMUM_RATE, LONGEST):
            raise SlowError("sends too slowly")
        self._deadline.check(_LATE)
        self._sock.settimeout(self._deadline.bound(self._patience))
        try:
            return self._raw.readinto(buffer)
        except TimeoutError:
            self._deadline.check(_LATE)
            raise

    def close(self) -> None:
        """The socket's stream too."""
        self._raw.close()
        super().close()


class Response:
    """An answer; to be closed, as a context manager."""

    def __init__(self, url: str, sock: socket.socket, deadline: Deadline) -> None:
        """Read its head; `sock` is closed with it, also if that fails."""
        self.url = url
        self._sock = sock
        self._rated = _MinimumRate(sock, deadline)
        try:
            stream = io.BufferedReader(self._rated)
            self.head = read_head(stream)
            self._body = Body(self.head, stream)
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
        self._rated.close()
        self._sock.close()

    def read(self, size: int) -> bytes:
        """Some of the body, which is what earns more time."""
        data = self._body.read(size)
        self._rated.handed += len(data)
        return data


def open_url(request: Request, *, timeout: float, deadline: Deadline) -> Response:
    """The answer to `request`, over proxies and after redirections as the rules say.

    Raises `StatusError`, `AnswerError`, an `OSError`, or a `ValueError` for an address that is
    none.
    """
    for _ in range(_REDIRECTIONS):
        response = _ask(request, deadline.bound(timeout), deadline)
        if response.head.status in _GOOD:
            return response
        response.close()
        target = redirection(request, response.head)
        if target is None:
            raise StatusError(response.head)
        deadline.check(_LATE)
        request = request._replace(url=target, login="")
    raise OSError(f"more than {_REDIRECTIONS} redirections")


def redirection(request: Request, head: Head) -> str | None:
    """Where a redirection leads; None if it is not one, or is not followed."""
    location = head.headers.get("location")
    if head.status not in _ELSEWHERE or not location or request.body is not None:
        return None
    from urllib.parse import quote, urljoin, urlsplit

    target = urljoin(request.url, location)
    scheme = urlsplit(target).scheme
    allowed = ("https",) if request.url.startswith("https:") else ("http", "https")
    return quote(target, safe="!#$%&'()*+,/:;=?@[]~") if scheme in allowed else None


def _ask(request: Request, timeout: float, deadline: Deadline) -> Response:
    route = Route.of(request.url)
    sent = _encode(request, route)
    sock = route.connect(timeout)
    try:
        if route.tunnels:
            _tunnel(route, sock, deadline)
        if route.secured_host:
            sock = secured(sock, route.secured_host)
        sock.sendall(sent)
    except BaseException:
        sock.close()
        raise
    return Response(request.url, sock, deadline)


def _encode(request: Request, route: Route) -> bytes:
    """What is sent; `ValueError` for an address that cannot be."""
    headers = {
        "Host": host_and_port(route.url),
        "Accept-Encoding": "identity",
        "Connection": "close",
        **request.headers,
    }
    if request.body is not None:
        headers["Content-Length"] = str(len(request.body))
    if request.login:
        headers["Authorization"] = request.login
    if route.proxy_login and not route.tunnels:
        headers["Proxy-Authorization"] = route.proxy_login
    method = "GET" if request.body is None else "POST"
    return _lines(f"{method} {_checked(route.target)} HTTP/1.1", headers) + (request.body or b"")


def _tunnel(route: Route, sock: socket.socket, deadline: Deadline) -> None:
    """Let the proxy pass on what comes and goes from now on."""
    host = route.url.hostname or ""
    place = f"[{host}]" if ":" in host else host
    place = _checked(f"{place}:{port_of(route.url)}")
    headers = {"Host": place}
    if route.proxy_login:
        headers["Proxy-Authorization"] = route.proxy_login
    sock.sendall(_lines(f"CONNECT {place} HTTP/1.1", headers))
    # The other side of a tunnel says nothing unasked: the buffer takes nothing of that.
    head = read_head(io.BufferedReader(_MinimumRate(sock, deadline)))
    if head.status not in _GOOD:
        raise OSError(f"the proxy refuses: {head.status} {head.reason}")


def _lines(first: str, headers: dict[str, str]) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("ascii")


def _checked(text: str) -> str:
    if _NOT_SENT.search(text):
        raise ValueError("the address has blanks or control characters in it")
    return text
