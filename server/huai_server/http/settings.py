"""The settings of the HTTP side: addresses, limits, and which modules there are.

Values only, without defaults: the configuration has them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from huai_server.config.mirrors import Mirrors
from huai_server.config.volatile import Volatile
from huai_server.http.asgi.tls import TlsFiles
from huai_server.http.fallback_clients import FallbackSlots


class Content(NamedTuple):
    """What of a module is handed out as content: the files of its newest commit."""

    repository: Path
    """Where the commits are."""
    tree: bytes
    """Where the files are."""
    is_volatile: Volatile
    """Those that are handed out as they are, whatever the commit says."""


class WebHook(NamedTuple):
    """A program elsewhere that is told of commits."""

    url: str
    secret_file: str
    """The path of the file with what signs."""
    internal: bool
    """Whether it may have an address of this network."""


class Grant(NamedTuple):
    """What a token allows."""

    modules: frozenset[str]
    scopes: frozenset[str]


class Registry(Protocol):
    """The modules that are served at this moment."""

    def modules(self) -> Mapping[str, Path]:
        """Name of each public module to its bare repository.

        Asked on every request, so it has to be cheap.
        """
        ...

    def private(self) -> Mapping[str, Path]:
        """The same of modules that only those see whom `Access` lets."""
        ...

    def certificates(self) -> Mapping[str, frozenset[str]]:
        """Names of client certificates that open private modules, as `Connection` gives them."""
        ...

    def grant(self, token: str) -> Grant | None:
        """What a token allows at this moment; None: it is not valid."""
        ...

    def contents(self) -> Mapping[str, Content]:
        """The modules that hand out content, private ones as well; the same value each time."""
        ...

    def undigested(self) -> Mapping[str, Path]:
        """The modules whose digests come later, with their repositories."""
        ...

    def fallback(self) -> Mapping[str, FallbackSlots]:
        """Where the fallback's daemon writes down whom it serves, of modules with such a limit."""
        ...

    def content_urls(self) -> Mapping[str, tuple[str, ...]]:
        """Where the content of relayed modules is, as far as it is not where their commits say."""
        ...

    def webhooks(self) -> Sequence[tuple[str, WebHook]]:
        """Modules and the hooks that hear of their commits."""
        ...

    def mirrors(self) -> Mirrors:
        """Whose attestations are taken; the same value until that changes."""
        ...


def every_repository(registry: Registry) -> set[Path]:
    """Those of all modules, to forget what was kept of others."""
    return {*registry.modules().values(), *registry.private().values()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """Where to listen, and how much one server does at once."""

    host: str
    port: int
    """0 picks a free one; `on_start` tells which."""
    socket_path: Path | None
    """Listen on this Unix socket instead of host and port."""
    tls: TlsFiles | None
    """None: plain HTTP."""
    proxies: tuple[str, ...]
    """Addresses and networks of proxies: X-Forwarded-For is believed from nobody else."""
    max_body: int
    """Bytes of one request body, after inflating it."""
    request_timeout: float
    """Seconds in which a whole request has to arrive, and after which a silent git is killed."""
    max_connections: int
    max_connections_per_address: int
    max_subscribers: int
    """Connections that stay open for events; they are not counted among the others."""
    max_transfers: int
    """git processes that build packs at once; ref listings have as many of their own."""
    queue: int
    """Requests that may wait for such a process; the next one gets status 503."""
    access_log: bool
    """Log each request."""
    shutdown_grace: float
    """Seconds that transfers in flight have to finish after SIGTERM."""
