"""A port on loopback that says what a test wants."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SECONDS = 60


@contextmanager
def listening(hear: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port; `hear` is given each connection to it, one after the other."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                hear(client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(_SECONDS)
