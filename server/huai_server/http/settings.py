"""What the HTTP side needs to know: its limits, and which modules there are.

Values only: nothing here reads a configuration file or the environment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class Registry(Protocol):
    """The modules that are served at this moment."""

    def modules(self) -> Mapping[str, Path]:
        """Module name to its bare repository.  Asked on every request, so it has to be cheap."""
        ...


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Where to listen, and how much one server is willing to do at once."""

    host: str = "127.0.0.1"
    port: int = 8440
    """0 picks a free one; `on_start` tells which."""
    socket_path: Path | None = None
    """Listen on this Unix socket instead of host and port."""
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    """Addresses and networks of proxies: X-Forwarded-For is believed from nobody else."""
    max_body: int = 8 << 20
    """Bytes of one request body, after inflating it."""
    request_timeout: float = 600.0
    """Seconds for a whole request to arrive, at whatever pace, and without a word from git."""
    max_connections: int = 2000
    max_connections_per_address: int = 200
    max_transfers: int = 8
    """git processes that build packs at once; ref listings have as many of their own."""
    queue: int = 64
    """Requests that may wait for such a process; the next one is told to come back later."""
    cache_bytes: int = 64 << 20
    """Memory for finished replies; one reply takes an eighth of it at most."""
    spool_folder: Path = Path("/var/tmp")  # noqa: S108 - files without a name
    """Where answers wait for readers that are slower than git."""
    spool_bytes: int = 1 << 30
    """All of them together."""
    access_log: bool = False
    """Log each request."""
    shutdown_grace: float = 60.0
    """Seconds that transfers in flight have to finish after SIGTERM."""
