"""The served modules, and the limits of the HTTP side that no key sets."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from huai_server.config.mirrors import Mirrors
from huai_server.config.tables import WebHook
from huai_server.config.volatile import Volatile
from huai_server.http.fallback_clients import FallbackSlots

MAX_BODY = 8 << 20
"""Bytes of one request body, inflated."""
QUEUE = 64
"""Requests that may wait for a slot; further ones get status 503."""


class Content(NamedTuple):
    """The content that a module serves: the files of its newest commit."""

    repository: Path
    tree: bytes
    """The folder with the files."""
    is_volatile: Volatile
    """True for files that are served even where they differ from the commit."""
    large_only: bool = False
    """True if only files with a block index are served, and of these what all users may read."""


class Grant(NamedTuple):
    """The rights of a token."""

    modules: frozenset[str]
    scopes: frozenset[str]


class Served(NamedTuple):
    """The modules that are served at one moment, in tables by their names."""

    modules: Mapping[str, Path]
    """The bare repository of each public module."""
    private: Mapping[str, Path]
    """The same of private modules, which only `Access` shows."""
    certificates: Mapping[str, frozenset[str]]
    """The names of client certificates (of `Connection`) that open a private module."""
    contents: Mapping[str, Content]
    """The modules that serve content, private ones too."""
    undigested: Mapping[str, Path]
    """The repositories of modules with late digests."""
    fallback: Mapping[str, FallbackSlots]
    """The lock file of each module whose fallback limits its clients."""
    content_urls: Mapping[str, tuple[str, ...]]
    """The content URLs of relayed modules, which replace those of their commits."""
    webhooks: Sequence[tuple[str, WebHook]]
    """Modules, and the web hooks that are notified of their commits."""
    mirrors: Mirrors

    @property
    def repositories(self) -> set[Path]:
        """The repositories of all modules."""
        return {*self.modules.values(), *self.private.values()}


class Registry(Protocol):
    """The source of the served modules, which may change at any time."""

    def served(self) -> Served:
        """Return the modules that are served now; called on every request, so it must be cheap."""
        ...

    def grant(self, token: str) -> Grant | None:
        """Return the rights of a token; None if it is not valid now."""
        ...
