"""A request of HTTP/1.1, and its response, which is read piece by piece.

Rules, from the moment a request is made:

- Its response has the timeout, and a second more for each `MINIMUM_RATE` bytes of its body that
  were read.  What else comes (interim responses, headers, trailers) earns no time.
- The timeout is for each time that nothing comes, too.
- At the deadline, and after `LONGEST`, it is over however fast it comes.
- A response that is not read makes the other side wait: no more than `_HELD_MOST` is held here.

Connections stay open for the next request, and each thread has its own: there is no lock.
"""

import os
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple, Self

import pycurl

from huai_client.config.proxies import proxy_for
from huai_client.config.reach import Reach
from huai_client.config.tls import SYSTEM_TLS, TlsFiles, check_key
from huai_client.metadata.curl.errors import BrokenError, CurlError, SlowError
from huai_client.metadata.curl.handle import Handle
from huai_client.metadata.curl.head import Head, read_head
from huai_client.metadata.curl.loop import Loop
from huai_client.run.deadline import Deadline
from huai_program.urls import split_url

MINIMUM_RATE = 1024
"""Bytes a second that an upstream has to send on average."""
LONGEST = 86_400.0
"""Seconds that a response may take."""
LATE = "the metadata did not come in time, and nothing was changed"
_HELD_MOST = 1 << 20
_HEAD_MOST = 256 << 10
"""Bytes of headers, interim responses and trailers."""
_CONNECTIONS = 16
_REFUSED = 0
"""Bytes taken: libcurl ends the transfer."""
_INTERIM = range(100, 200)


class Request(NamedTuple):
    """A request: its URL, body and headers, and the addresses that it may reach."""

    url: str
    body: bytes | None = None
    """Sent by POST, if there is one."""
    headers: Mapping[str, str] = {}
    tls: TlsFiles = SYSTEM_TLS
    """Own certificates, for the hosts that they name."""
    reach: Reach | None = None
    """The addresses that `url` may lead to; None: any, as client.toml names it."""


class Exchange(Handle):
    """A request that is on its way; to be closed, as a context manager."""

    def __init__(self, request: Request, *, timeout: float, deadline: Deadline) -> None:
        """Send it, as far as that needs no waiting.

        `TlsError` for a key that others may read, `ValueError` for a proxy that has no host.
        """
        files = request.tls.at(request.url)
        check_key(files)
        super().__init__(files, request.reach)
        self.url = request.url
        self._timeout, self._deadline = timeout, deadline
        self._head_lines = bytearray()
        self._head_bytes = 0
        self._head: Head | None = None
        self._body = bytearray()
        self._paused = False
        self._end: CurlError | None = None
        self._waits = time.monotonic()
        self._came = False
        self._proxy = proxy_for(split_url(request.url))
        self._set_up(request)
        self._session = _session()
        self.renew()
        self._session.begin(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it; the connection stays open if the response was read to its end."""
        if self._end is None:
            self._session.break_off(self)
        super().close()

    def renew(self) -> None:
        """Give what is still to come the time of a new response."""
        self._began = time.monotonic()
        self._read = 0

    def head(self) -> Head:
        """Wait for the final head, and return it."""
        self._waits = time.monotonic()
        while self._head is None:
            self._check_end()
            self._step()
        return self._head

    def read(self, size: int) -> bytes:
        """Return some of the body, at most `size` bytes; empty: it has ended."""
        self._waits = time.monotonic()
        while not self._body:
            if self._end is not None:
                self._check_end()
                return b""
            self._step()
        data = bytes(self._body[:size])
        del self._body[:size]
        self._read += len(data)
        return data

    def end(self, error: CurlError) -> None:
        """Note how it ended."""
        self._end = error

    def _set_up(self, request: Request) -> None:
        curl = self.curl
        headers = {"Accept-Encoding": "identity", **request.headers}
        if request.body is not None:
            headers["Expect"] = ""  # libcurl would ask whether to send a long one
            curl.setopt(pycurl.POST, 1)
            curl.setopt(pycurl.POSTFIELDSIZE_LARGE, len(request.body))
            curl.setopt(pycurl.COPYPOSTFIELDS, request.body)
        for option, value in (
            (pycurl.HTTPHEADER, [f"{name}: {value}" for name, value in headers.items()]),
            (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1),
            (pycurl.HEADERFUNCTION, self._take_header),
            (pycurl.WRITEFUNCTION, self._take_body),
        ):
            curl.setopt(option, value)
        self.set_url(request.url)
        self.set_proxy(self._proxy)

    def _check_end(self) -> None:
        if self.broken is not None:
            raise self.broken
        if self._end is not None and (self._end.number or self._head is None):
            raise BrokenError(self._end, self._proxy, self.refusal)

    def _step(self) -> None:
        """Wait until anything happens, as long as the rules allow."""
        if self._paused:
            self._paused = False
            self.curl.pause(pycurl.PAUSE_CONT)
            if self._body:
                return
        now = time.monotonic()
        patience = min(self._timeout + self._read / MINIMUM_RATE, LONGEST)
        slow, silent = self._began + patience, self._waits + self._timeout
        self._deadline.check(LATE)
        if now >= min(slow, silent):
            if self._came and now < silent:
                raise SlowError("sends too slowly")
            raise TimeoutError
        self._session.step(self._deadline.bound(min(slow, silent) - now))

    def _take_header(self, line: bytes) -> int | None:
        try:
            self._waits, self._came = time.monotonic(), True
            self._head_bytes += len(line)
            if self._head_bytes > _HEAD_MOST:
                return _REFUSED
            if self._head is None:
                self._head_lines += line
                if not line.strip():
                    head = read_head(bytes(self._head_lines))
                    self._head_lines.clear()
                    self._head = None if head.status in _INTERIM else head
        except BaseException as error:  # noqa: BLE001 - see `handle`
            self.broken = error
            return _REFUSED
        return None

    def _take_body(self, data: bytes) -> int | None:
        try:
            self._waits, self._came = time.monotonic(), True
            if len(self._body) >= _HELD_MOST:
                self._paused = True
                return pycurl.WRITEFUNC_PAUSE
            self._body += data
        except BaseException as error:  # noqa: BLE001 - see `handle`
            self.broken = error
            return _REFUSED
        return None


class _Session:
    """The connections of a thread, and what is on its way on them."""

    def __init__(self) -> None:
        self._loop = Loop(_CONNECTIONS, 1)
        self._exchanges: dict[pycurl.Curl, Exchange] = {}

    def begin(self, exchange: Exchange) -> None:
        """Send it, as far as that needs no waiting."""
        self._exchanges[exchange.curl] = exchange
        self._loop.begin(exchange.curl)
        self.step(0)

    def break_off(self, exchange: Exchange) -> None:
        """End it at once."""
        del self._exchanges[exchange.curl]
        self._loop.break_off(exchange.curl)

    def step(self, seconds: float) -> None:
        """Let all of them go on, for so many seconds at most."""
        self._loop.step(seconds)
        for curl, error in self._loop.ended():
            self._exchanges.pop(curl).end(error)


_sessions: dict[tuple[int, int], _Session] = {}
"""By process and thread: a child that was forked must not touch connections of its parent."""


def _session() -> _Session:
    key = os.getpid(), threading.get_ident()
    if key not in _sessions:
        _sessions[key] = _Session()
    return _sessions[key]
