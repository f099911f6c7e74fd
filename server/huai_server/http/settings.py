"""The settings of the HTTP side: addresses, limits, and the served modules.

Values only, without defaults: the configuration has those.
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
    """The content that a module serves: the files of its newest commit."""

    repository: Path
    """The repository with the commits."""
    tree: bytes
    """The folder with the files."""
    is_volatile: Volatile
    """True for files that are served even where they differ from the commit."""


class WebHook(NamedTuple):
    """A program elsewhere that is notified of commits."""

    url: str
    secret_file: str
    """The path of the file with the signing secret."""
    internal: bool
    """True if the URL may have an internal address."""


class Grant(NamedTuple):
    """The rights of a token."""

    modules: frozenset[str]
    scopes: frozenset[str]


class Registry(Protocol):
    """The modules that are served now."""

    def modules(self) -> Mapping[str, Path]:
        """Map the name of each public module to its bare repository.

        Called on every request, so it must be cheap.
        """
        ...

    def private(self) -> Mapping[str, Path]:
        """Return the same for private modules, which only `Access` shows."""
        ...

    def certificates(self) -> Mapping[str, frozenset[str]]:
        """Map private modules to the certificate names (of `Connection`) that open them."""
        ...

    def grant(self, token: str) -> Grant | None:
        """Return the rights of a token; None if it is not valid now."""
        ...

    def contents(self) -> Mapping[str, Content]:
        """Return the modules that serve content, private ones too; the same value each time."""
        ...

    def undigested(self) -> Mapping[str, Path]:
        """Return the modules with late digests, with their repositories."""
        ...

    def fallback(self) -> Mapping[str, FallbackSlots]:
        """Return the lock file of each fallback daemon that limits its clients."""
        ...

    def content_urls(self) -> Mapping[str, tuple[str, ...]]:
        """Return the content URLs of relayed modules that replace those of their commits."""
        ...

    def webhooks(self) -> Sequence[tuple[str, WebHook]]:
        """Return modules and the web hooks that are notified of their commits."""
        ...

    def mirrors(self) -> Mirrors:
        """Return the mirrors whose attestations are accepted; the same value until it changes."""
        ...


def every_repository(registry: Registry) -> set[Path]:
    """Return the repositories of all modules."""
    return {*registry.modules().values(), *registry.private().values()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """The address to listen on, and the limits of one server."""

    host: str
    port: int
    """0 picks a free port; `on_start` gets it."""
    socket_path: Path | None
    """Listen on this Unix socket instead of host and port."""
    tls: TlsFiles | None
    """None: plain HTTP."""
    proxies: tuple[str, ...]
    """Addresses and networks of the proxies whose X-Forwarded-For is trusted."""
    max_body: int
    """Bytes of one request body, inflated."""
    request_timeout: float
    """Seconds within which a whole request must arrive, and after which a silent git is killed."""
    max_connections: int
    max_connections_per_address: int
    max_subscribers: int
    """Connections that stay open for events; they do not count as other connections."""
    max_transfers: int
    """git processes that build packs at once; ref listings have as many more."""
    queue: int
    """Requests that may wait for such a process; further ones get status 503."""
    access_log: bool
    """Log each request."""
    shutdown_grace: float
    """Seconds that transfers in flight have to finish after SIGTERM."""
