"""A client's connection: uvicorn's class, with limits for what it receives and for readers.

uvicorn itself waits for ever for a head that never ends, and keeps all of it; it reads and keeps
all requests that a client sends before it has the response; it waits for ever for a client that
does not read; and it has no limit for each address.
Rule: a poll starts one timer, that of its head.
"""

import asyncio
import logging
import socket
from collections.abc import Collection, MutableMapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from huai_server.http.asgi.connections import ConnectionLimit, Member

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

HEAD_BYTES = 64 << 10
PIPELINED = 64
"""The most requests that wait for the response before theirs: apt sends ten at a time."""

EXTENSION = "huai.connection"
"""The key of a request's `Connection` among the extensions of its scope."""
PACE = 4096
"""Bytes a second that a client must read."""
_UNREAD_BYTES = 16 << 10
"""The send buffer of an endless response; the kernel holds about as much again."""


class Connection(HttpToolsProtocol):
    """A connection, closed if a head takes longer than `head_seconds` or exceeds `HEAD_BYTES`.

    It is closed at more than `PIPELINED` waiting requests, and reads nothing while one waits.
    A client that does not read its response may pause for `pause_seconds` in all.  It gains one
    second for each `PACE` bytes that it reads, up to `pause_seconds` more.
    """

    head_seconds: ClassVar[float]
    pause_seconds: ClassVar[float]
    connection_limit: ClassVar[ConnectionLimit]
    handshake: Member | None = None
    """The member of the limit that was counted for this connection during its TLS handshake."""
    _credit: float | None = None
    """Seconds that the reader may still pause; None before its first pause."""
    _paused_at = 0.0
    _unread = 0
    _pause_timer: asyncio.TimerHandle | None = None
    _head_timer: asyncio.TimerHandle | None = None
    _head_size = 0
    _in_head = False
    _running: "RequestResponseCycle | None" = None
    """The last request that began to run; `cycle` is the last one received."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, or close it if a limit forbids it; start the timer of its head."""
        super().connection_made(transport)
        self.flow = _Flow(transport, self.pipeline)
        host = self.client[0] if self.client else ""
        self.logger = _Named(self.logger, {"client": host})  # type: ignore[assignment]
        if self.handshake is not None:
            self.connection_limit.leave(self.handshake)
        if self.connection_limit.admit(self, host):
            self._start_head_timer()
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse `data`; close the connection if an unfinished head is too long.

        Starts the timer of a head that begins.
        """
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._head_timer is not None:
            self._head_size += len(data)
            if self._head_size > HEAD_BYTES:
                self.transport.close()
        elif self._is_idle() or (self._in_head and not self.pipeline):
            self._start_head_timer()

    def on_headers_complete(self) -> None:
        """Stop the timer of the head; a body has its own limits."""
        self._in_head = False
        self._stop_head_timer()
        super().on_headers_complete()
        if not self.pipeline:
            self._running = self.cycle

    def on_message_begin(self) -> None:
        """Begin a request, and put this connection into the `extensions` of its scope.

        Closes the connection if too many wait.
        """
        if len(self.pipeline) == PIPELINED:
            self.transport.abort()
            raise ConnectionAbortedError  # it ends the parser
        self._in_head = True
        super().on_message_begin()
        self.scope["extensions"] = {EXTENSION: self}  # type: ignore[dict-item] # of our own

    def keep_for_events(self) -> None:
        """Leave the limit, and buffer little from now on: the response is endless."""
        self.connection_limit.leave(self)
        self.transport.set_write_buffer_limits(high=_UNREAD_BYTES)
        sock = self.transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNREAD_BYTES)

    def certificate_names(self) -> frozenset[str]:
        """Return the names of the client's valid certificate; none without one.

        `sha256:` with the hash of the certificate in hex, and `CN=` with the name of its subject.
        """
        tls = self.transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert(binary_form=True) if tls else None
        if not certificate:
            return frozenset()
        subject = [each for one in tls.getpeercert()["subject"] for each in one]
        names = [f"CN={value}" for kind, value in subject if kind == "commonName"]
        return frozenset((f"sha256:{sha256(certificate).hexdigest()}", *names))

    def on_message_complete(self) -> None:
        """Mark the connection as not waiting: its request is complete."""
        self.connection_limit.set_answered(self)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Mark the connection as waiting for the next request; begin the next that has come."""
        self.connection_limit.set_waiting(self)
        if self.pipeline:
            self._running = self.pipeline[-1][0]
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the limit, stop the timers, and tell the running request."""
        self.connection_limit.leave(self)
        self._stop_head_timer()
        if self._pause_timer is not None:
            self._pause_timer.cancel()
        if self._running is not None:
            self.cycle = self._running  # the one that uvicorn tells
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the timer that closes the connection unless the client continues to read."""
        super().pause_writing()
        if self._credit is None:
            self._credit = self.pause_seconds
        self._paused_at = self.loop.time()
        self._unread = self.transport.get_write_buffer_size()
        self._pause_timer = self.loop.call_later(self._credit, self.hang_up)

    def resume_writing(self) -> None:
        """Stop that timer, and credit the client with the time for what it has read."""
        super().resume_writing()
        if self._pause_timer is not None and self._credit is not None:
            self._pause_timer.cancel()
            self._pause_timer = None
            paused = self.loop.time() - self._paused_at
            read = self._unread - self.transport.get_write_buffer_size()
            self._credit = min(self.pause_seconds, self._credit - paused + read / PACE)

    def hang_up(self) -> None:
        """Close at once, with data unsent."""
        self.transport.abort()

    def _is_idle(self) -> bool:
        """True between two requests, if data has stopped uvicorn's own timer."""
        cycle: RequestResponseCycle | None = self.cycle
        return (cycle is None or cycle.response_complete) and self.timeout_keep_alive_task is None

    def _start_head_timer(self) -> None:
        """Close the connection in `head_seconds`, unless `_stop_head_timer` is called."""
        self._head_timer = self.loop.call_later(self.head_seconds, self.transport.close)

    def _stop_head_timer(self) -> None:
        self._head_size = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class _Flow(FlowControl):
    """uvicorn's flow control, which does not resume reading while a request waits."""

    def __init__(self, transport: asyncio.Transport, waiting: Collection[object]) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        """Resume reading, unless a request waits."""
        if not self._waiting:
            super().resume_reading()


class _Named(logging.LoggerAdapter[logging.Logger]):
    """uvicorn's log, with the client's address before each message."""

    level = logging.WARNING
    """uvicorn compares it, to trace more."""

    def process(
        self, msg: str, kwargs: MutableMapping[str, Any]
    ) -> tuple[str, MutableMapping[str, Any]]:
        """Return the message with the client's address before it, or `local` without one."""
        return f"{(self.extra or {})['client'] or 'local'}: {msg}", kwargs


def connection_class(
    connection_limit: ConnectionLimit, *, head_seconds: float, pause_seconds: float
) -> type[Connection]:
    """Return a subclass of `Connection` with these limits; uvicorn makes a value for each client.

    `head_seconds` and `pause_seconds` are as `Connection` describes them.
    """
    bounds = {
        "connection_limit": connection_limit,
        "head_seconds": head_seconds,
        "pause_seconds": pause_seconds,
    }
    return type("BoundConnection", (Connection,), bounds)
