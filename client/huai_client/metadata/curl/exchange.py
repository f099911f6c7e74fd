"""A request of HTTP/1.1, and its response, which is read piece by piece.

Rules, from the moment a request is made:

- The response has the timeout, and a second more for each `MINIMUM_RATE` bytes of its body that
  were read.  Other data (interim responses, headers, trailers) earn no time.
- Each pause without data is limited by the timeout, too.
- The transfer ends at the deadline, and after `LONGEST`, at any speed.
- A response that is not read makes the server wait: at most `_BUFFERED_MOST` bytes are buffered.

Connections are kept alive for the next request.  Each thread has its own, so there are no locks.
"""

import os
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager

import pycurl
from msgspec import Struct

from huai_client.config.allowed_addresses import AllowedAddresses
from huai_client.config.proxies import proxy_for
from huai_client.config.tls import SYSTEM_TLS, TlsFiles, check_key
from huai_client.metadata.curl.errors import BrokenError, CurlError, SlowError
from huai_client.metadata.curl.handle import Handle
from huai_client.metadata.curl.head import Head, read_head
from huai_client.metadata.curl.loop import Loop
from huai_client.run.options import Deadline
from huai_program.urls import split_url

MINIMUM_RATE = 1024
"""Bytes a second that an upstream must send on average."""
LONGEST = 86_400.0
"""Seconds that a response may take."""
LATE = "the metadata did not arrive in time, and nothing was changed"
_BUFFERED_MOST = 1 << 20
_HEAD_MOST = 256 << 10
"""Bytes of headers, interim responses and trailers."""
_CONNECTIONS = 16
_ABORT = 0
"""The return value of a callback that makes libcurl end the transfer."""
_INTERIM = range(100, 200)


class CurlRequest(Struct, frozen=True):
    """A request as libcurl sends it, and the addresses that it may connect to."""

    url: str
    body: bytes | None = None
    """Sent by POST, if there is a body."""
    headers: Mapping[str, str] = {}
    tls: TlsFiles = SYSTEM_TLS
    """Certificates configured for hosts."""
    allowed_addresses: AllowedAddresses | None = None
    """Addresses that `url` may lead to; None for any, as with a URL of client.toml."""


class Exchange(Handle, AbstractContextManager["Exchange"]):
    """A request in progress, as a context manager."""

    def __init__(self, request: CurlRequest, *, timeout: float, deadline: Deadline) -> None:
        """Send the request, as far as that is possible without waiting.

        `timeout` (s) limits each pause without data, and the whole response, for which each KiB
        that was read adds a second.  Raises `TlsError` for a key that is missing or that every user
        may read, `ValueError` for a proxy without a host.
        """
        files = request.tls.at(request.url)
        check_key(files)
        super().__init__(files, request.allowed_addresses)
        self.url = request.url
        self._timeout, self._deadline = timeout, deadline
        self._head_lines = bytearray()
        self._head_bytes = 0
        self._head: Head | None = None
        self._body = bytearray()
        self._paused = False
        self._end: CurlError | None = None
        self._last_data = time.monotonic()
        self._has_data = False
        self._proxy = proxy_for(split_url(request.url))
        self._set_up(request)
        self._session = _session()
        self.renew()
        self._session.begin(self)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the exchange; the connection stays open if the response was read to its end."""
        if self._end is None:
            self._session.break_off(self)
        super().close()

    def renew(self) -> None:
        """Restart the timeout for the rest of the response."""
        self._began = time.monotonic()
        self._read = 0

    def head(self) -> Head:
        """Wait for the final head, and return it.

        Raises `TimeoutError` or `TimeUpError` if it is late, `BrokenError` if the transfer fails.
        """
        self._last_data = time.monotonic()
        while self._head is None:
            self._check_end()
            self._step()
        return self._head

    def read(self, size: int) -> bytes:
        """Wait for some of the body, and return at most `size` bytes; empty at its end.

        Raises as `head` does.
        """
        self._last_data = time.monotonic()
        while not self._body:
            if self._end is not None:
                self._check_end()
                return b""
            self._step()
        data = bytes(self._body[:size])
        del self._body[:size]
        self._read += len(data)
        return data

    def record_end(self, error: CurlError) -> None:
        """Record how the transfer ended."""
        self._end = error

    def _set_up(self, request: CurlRequest) -> None:
        """Set method, body, headers and callbacks of the request."""
        curl = self.curl
        headers = {"Accept-Encoding": "identity", **request.headers}
        if request.body is not None:
            headers["Expect"] = ""  # libcurl would send `100-continue` with a long body
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
        """Raise the error of a callback, or `BrokenError` after a failure."""
        if self.broken is not None:
            raise self.broken
        if self._end is not None and (self._end.number or self._head is None):
            raise BrokenError(self._end, self._proxy, self.refusal)

    def _step(self) -> None:
        """Wait for the next event, or let a paused transfer continue.

        Raises `TimeoutError` after a pause without data, `SlowError` for a response that trickles,
        and `TimeUpError` at the deadline.
        """
        if self._paused:
            self._paused = False
            self.curl.pause(pycurl.PAUSE_CONT)
            if self._body:
                return
        now = time.monotonic()
        patience = min(self._timeout + self._read / MINIMUM_RATE, LONGEST)
        slow, silent = self._began + patience, self._last_data + self._timeout
        self._deadline.check(LATE)
        if now >= min(slow, silent):
            if self._has_data and now < silent:
                raise SlowError("sends too slowly")
            raise TimeoutError
        self._session.step(self._deadline.bound(min(slow, silent) - now))

    def _take_header(self, line: bytes) -> int | None:
        """Add a header line; return `_ABORT` if the head is too long, or wrong (`broken`)."""
        try:
            self._last_data, self._has_data = time.monotonic(), True
            self._head_bytes += len(line)
            if self._head_bytes > _HEAD_MOST:
                return _ABORT
            if self._head is None:
                self._head_lines += line
                if not line.strip():
                    head = read_head(bytes(self._head_lines))
                    self._head_lines.clear()
                    self._head = None if head.status in _INTERIM else head
        except BaseException as error:  # noqa: BLE001 - see `handle`
            self.broken = error
            return _ABORT
        return None

    def _take_body(self, data: bytes) -> int | None:
        """Buffer data for the reader, or pause the transfer while the buffer is full.

        Keeps an exception in `broken`, and returns `_ABORT`.
        """
        try:
            self._last_data, self._has_data = time.monotonic(), True
            if len(self._body) >= _BUFFERED_MOST:
                self._paused = True
                return pycurl.WRITEFUNC_PAUSE
            self._body += data
        except BaseException as error:  # noqa: BLE001 - see `handle`
            self.broken = error
            return _ABORT
        return None


class _Session:
    """The connections of a thread, and the exchanges in progress on them."""

    def __init__(self) -> None:
        self._loop = Loop(_CONNECTIONS, 1)
        self._exchanges: dict[pycurl.Curl, Exchange] = {}

    def begin(self, exchange: Exchange) -> None:
        """Send the request, as far as that is possible without waiting."""
        self._exchanges[exchange.curl] = exchange
        self._loop.begin(exchange.curl)
        self.step(0)

    def break_off(self, exchange: Exchange) -> None:
        """Abort the exchange."""
        del self._exchanges[exchange.curl]
        self._loop.break_off(exchange.curl)

    def step(self, seconds: float) -> None:
        """Continue all exchanges, for `seconds` at most."""
        self._loop.step(seconds)
        for curl, error in self._loop.ended():
            self._exchanges.pop(curl).record_end(error)


_sessions: dict[tuple[int, int], _Session] = {}
"""Sessions by process and thread: a forked child must not use its parent's connections."""


def _session() -> _Session:
    """Return the session of this thread, made at its first use and after a fork."""
    key = os.getpid(), threading.get_ident()
    if key not in _sessions:
        _sessions[key] = _Session()
    return _sessions[key]
