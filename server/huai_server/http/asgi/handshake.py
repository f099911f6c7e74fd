"""Accepting connections with TLS: each becomes a `Connection` after its handshake.

A server made by asyncio reports a client only after that, so handshakes that never finish would
not be limited.
Rule: a client in its handshake counts as one of the limited connections, and is among the first
to give way.
"""

import asyncio
import logging
import socket
from collections.abc import Callable

from huai_server.http.asgi.connection import Connection
from huai_server.http.asgi.tls import TlsContext

_PAUSE_SECONDS = 0.5
"""The pause after a failed accept: most likely, no file is free."""
_log = logging.getLogger(__name__)


class _Handshake:
    """A client before its TLS handshake is over: a member of the connections."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None

    def hang_up(self) -> None:
        """Cancel the handshake, and close the connection."""
        if self.task is not None:
            self.task.cancel()


class TlsListener:
    """An acceptor of the clients of one listening socket; `make` returns one's connection."""

    def __init__(
        self, tls: TlsContext, listener: socket.socket, make: Callable[[], Connection]
    ) -> None:
        listener.settimeout(0)
        self._tls = tls
        self._listener = listener
        self._make = make
        self._running: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Accept clients until cancelled; then close those in a handshake.  Errors are logged."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    client, peer = await loop.sock_accept(self._listener)
                except OSError as error:
                    _log.warning("cannot accept a connection: %s", error.strerror)
                    await asyncio.sleep(_PAUSE_SECONDS)
                    continue
                self._begin_handshake(client, str(peer[0]))
        finally:
            for task in self._running:
                task.cancel()

    def _begin_handshake(self, client: socket.socket, host: str) -> None:
        """Count the client, or close it if a limit forbids it; start its handshake in a task."""
        connection, handshake = self._make(), _Handshake()
        if not connection.connection_limit.admit(handshake, host):
            client.close()
            return
        connection.handshake = handshake
        task = asyncio.ensure_future(self._finish_handshake(client, connection))
        handshake.task = task
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: connection.connection_limit.leave(handshake))

    async def _finish_handshake(self, client: socket.socket, connection: Connection) -> None:
        """Finish the handshake; close the connection if it fails or is cancelled."""
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                client,
                ssl=self._tls.context,
                ssl_handshake_timeout=connection.head_seconds,
            )
        except OSError:  # of ssl too: the client's fault, or none
            client.close()
        except asyncio.CancelledError:
            client.close()
            raise
