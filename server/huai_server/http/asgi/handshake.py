"""Accepts connections with TLS: each becomes a `Connection` when its handshake is over.

A server that asyncio makes tells nobody of a client before that, so nothing would limit those that
never finish.
Rule: whoever is in a handshake is one of the connections that are limited, and among the first to
give way.
"""

import asyncio
import logging
import socket
from collections.abc import Callable

from huai_server.http.asgi.connection import Connection
from huai_server.http.asgi.tls import Tls

_PAUSE_SECONDS = 0.5
"""After an accept that failed: no file is free, most likely."""
_log = logging.getLogger(__name__)


class _Handshake:
    """One client until it is known to speak TLS: a member of the connections."""

    def __init__(self) -> None:
        """Runs nothing yet."""
        self.task: asyncio.Task[None] | None = None

    def hang_up(self) -> None:
        """Give way to others."""
        if self.task is not None:
            self.task.cancel()


class TlsListener:
    """Accepts the clients of one listening socket."""

    def __init__(self, tls: Tls, listener: socket.socket, make: Callable[[], Connection]) -> None:
        """`make` a connection for each."""
        listener.settimeout(0)
        self._tls = tls
        self._listener = listener
        self._make = make
        self._running: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Accept clients until this is cancelled; those in a handshake are dropped then."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    client, peer = await loop.sock_accept(self._listener)
                except OSError as error:
                    _log.warning("no connection could be accepted: %s", error.strerror)
                    await asyncio.sleep(_PAUSE_SECONDS)
                    continue
                self._begin(client, str(peer[0]))
        finally:
            for task in self._running:
                task.cancel()

    def _begin(self, client: socket.socket, host: str) -> None:
        connection, handshake = self._make(), _Handshake()
        if not connection.connection_limit.join(handshake, host):
            client.close()
            return
        connection.handshake = handshake
        task = asyncio.ensure_future(self._shake(client, connection))
        handshake.task = task
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: connection.connection_limit.leave(handshake))

    async def _shake(self, client: socket.socket, connection: Connection) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                client,
                ssl=self._tls.context,
                ssl_handshake_timeout=connection.head_seconds,
            )
        except OSError:  # of ssl as well: it is the client's, or nobody's
            client.close()
        except asyncio.CancelledError:
            client.close()
            raise
