"""The hosts of one client root: where their record and their slots stand."""

from pathlib import Path
from urllib.parse import urlsplit

from huai_client.state.hosts.connections import ConnectionLimit
from huai_client.state.hosts.health import UpstreamHealth

_CONNECTIONS = 4
"""To each host, if nothing is configured; a module with more streams gets as many."""
_NAME_MAX = 200


class Hosts:
    """Made once for each run, and handed down."""

    def __init__(self, root: Path | None = None) -> None:
        """`root` is the client's; None: no limits, and nothing is remembered on the disk."""
        self._folder = None if root is None else root / "hosts"
        self.health = UpstreamHealth(None if root is None else root / "upstreams.json")

    def connection_limit(self, host: str, connections: int, streams: int) -> ConnectionLimit | None:
        """The connections to `host` for a module with so many `streams`; None: any number.

        `connections` is what is configured; 0: nothing.
        """
        if self._folder is None or not host:
            return None
        limit = connections or max(_CONNECTIONS, streams)
        return ConnectionLimit(self._folder / host.lower()[:_NAME_MAX], limit)


def service_of(url: str) -> str:
    """What answers at a URL, as it is remembered: scheme, host and port; empty: no network."""
    try:
        split = urlsplit(url)
        host, port = split.hostname, split.port
    except ValueError:
        return ""
    if not split.scheme or not host:
        return ""
    shown = f"[{host}]" if ":" in host else host
    return f"{split.scheme}://{shown}" + (f":{port}" if port else "")
