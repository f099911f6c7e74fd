"""How many clients a real rsync daemon serves, as its locks tell."""

import socket
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from huai_server.http.fallback_clients import FallbackSlots, fallback_clients
from tests.support.processes import until
from tests.support.rsyncd import rsync_daemon

SECONDS = 60


def connected(port: int, module: str) -> socket.socket:
    """A client that has chosen a module, and says nothing more."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
    connection.sendall(b"@RSYNCD: 31.0\n%b\n" % module.encode())
    return connection


def test_each_client_of_a_module_is_counted(tmp_path: Path) -> None:
    place = FallbackSlots(tmp_path / "lock", 3)
    assert fallback_clients(place) is None
    with (
        rsync_daemon({"m": tmp_path}, max_connections="3", lock_file=str(place.lock_file)) as url,
        ExitStack() as clients,
    ):
        port = urlsplit(url).port
        assert port
        first = clients.enter_context(connected(port, "m"))
        until(lambda: fallback_clients(place) == 1)
        clients.enter_context(connected(port, "m"))
        until(lambda: fallback_clients(place) == 2)
        first.close()
        until(lambda: fallback_clients(place) == 1)
    until(lambda: fallback_clients(place) == 0)
