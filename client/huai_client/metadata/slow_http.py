"""HTTP that waits for nothing without an end: urllib's, with a watch on every read.

Rules, from the moment a question is sent:

- Its answer has the request's timeout, and a second more for each `MINIMUM_RATE` bytes of its body
that
  were handed over.  What else comes (interim answers, headers, trailers) earns no time.
- Silence is urllib's own business: the timeout is for each time that nothing comes, too.
- At the deadline, and after `LONGEST`, it is over however fast it comes.
- A redirection is followed for questions without a body, a few times, to HTTP alone, never from
  https to http; its own body is not read.  Other protocols are not spoken at all.
"""

import http.client
import io
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from functools import partial
from typing import Any

from huai_client.deadline import Deadline

MINIMUM_RATE = 1024
"""Bytes a second that an upstream has to send on average."""
LONGEST = 86_400.0
"""Seconds that one answer may take."""
_REDIRECTIONS = 5
_ADDRESSES = 8
"""Of one host, that are tried."""
_ELSEWHERE = (301, 302, 303, 307, 308)


class SlowError(TimeoutError):
    """Something comes, and too little."""


class _MinimumRate(io.RawIOBase):
    """A socket's stream, read only while it sends at least `MINIMUM_RATE`."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, deadline: Deadline) -> None:
        self._raw = raw
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
            size: int | None = self._raw.readinto(buffer)
        except TimeoutError:
            self._deadline.check(_LATE)
            raise
        return size

    def close(self) -> None:
        """The socket's stream too."""
        self._raw.close()
        super().close()


_LATE = "the metadata did not come in time, and nothing was changed"


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, deadline: Deadline, **named: Any) -> None:
        super().__init__(sock, *args, **named)
        self._rated = _MinimumRate(self.fp.detach(), sock, deadline)
        self.fp = io.BufferedReader(self._rated)

    def read1(self, n: int = -1) -> bytes:
        """Some of the body, which is what earns more time."""
        data = super().read1(n)
        self._rated.handed += len(data)
        return data


def _connect(
    address: tuple[str, int], timeout: float, source: tuple[str, int] | None = None
) -> socket.socket:
    """As `socket.create_connection`, but not for ever by trying one address after the other."""
    host, port = address
    until, failed = time.monotonic() + timeout, OSError("the host has no address")
    for *_, place in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)[:_ADDRESSES]:
        left = until - time.monotonic()
        if left <= 0:
            break
        try:
            found = socket.create_connection((str(place[0]), int(place[1])), left, source)
        except OSError as error:
            failed = error
        else:
            found.settimeout(timeout)
            return found
    raise failed


class _Handler(urllib.request.AbstractHTTPHandler):
    """Both kinds of HTTP, each answer watched."""

    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_

    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """As `OpenerDirector` asks."""
        return self.do_open(partial(self._watched, http.client.HTTPConnection), req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """As `OpenerDirector` asks."""
        return self.do_open(partial(self._watched, http.client.HTTPSConnection), req)

    def _watched(self, kind: Any, host: str, **named: Any) -> http.client.HTTPConnection:
        connection: Any = kind(host, **named)
        connection.response_class = partial(_Response, deadline=self._deadline)
        connection._create_connection = _connect  # noqa: SLF001 - the one place to say it
        return connection  # type: ignore[no-any-return]


def open_url(request: urllib.request.Request, *, timeout: float, deadline: Deadline) -> Any:
    """The answer to `request`, over proxies and after redirections as the rules say.

    Raises what `urllib.request.urlopen` raises.
    """
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        _Handler(deadline),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    for _ in range(_REDIRECTIONS):
        try:
            return opener.open(request, timeout=deadline.bound(timeout))
        except urllib.error.HTTPError as error:
            target = redirection(request, error)
            if target is None:
                raise
            error.close()
            deadline.check(_LATE)
            # Unredirected headers, which is where a login stands, stay behind.
            request = urllib.request.Request(target, headers=dict(request.headers))  # noqa: S310
    raise urllib.error.URLError(f"more than {_REDIRECTIONS} redirections")


def redirection(request: urllib.request.Request, error: urllib.error.HTTPError) -> str | None:
    """Where a redirection leads; None if it is not one, or is not followed."""
    location = error.headers.get("Location")
    if error.code not in _ELSEWHERE or not location or request.data is not None:
        return None
    target = urllib.parse.urljoin(request.full_url, location)
    scheme = urllib.parse.urlsplit(target).scheme
    allowed = ("https",) if request.type == "https" else ("http", "https")
    return urllib.parse.quote(target, safe="!#$%&'()*+,/:;=?@[]~") if scheme in allowed else None
