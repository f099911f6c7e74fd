"""The served modules, and the limits of the HTTP side that no key sets."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from huai_server.config.mirrors import Mirrors
from huai_server.config.tables import Module
from huai_server.http.fallback_clients import FallbackSlots

MAX_BODY = 8 << 20
"""Bytes of one request body, inflated."""
QUEUE = 64
"""Requests that may wait for a slot; further ones get status 503."""


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
    settings: Mapping[str, Module]
    """The tables of server.toml, of private modules too."""
    fallback: Mapping[str, FallbackSlots]
    """The lock file of each module whose fallback limits its clients."""
    mirrors: Mirrors

    @property
    def repositories(self) -> set[Path]:
        """The repositories of all modules."""
        return {*self.modules.values(), *self.private.values()}

    def repository(self, name: str) -> Path | None:
        """Return the repository of a public or private module; access was checked before."""
        return self.modules.get(name) or self.private.get(name)

    def content_urls(self, name: str) -> tuple[str, ...]:
        """Return the content URLs that replace those of the commits of a module; may be empty."""
        module = self.settings.get(name)
        return module.relay_urls if module else ()


class Registry(Protocol):
    """The source of the served modules, which may change at any time."""

    def served(self) -> Served:
        """Return the modules that are served now; called on every request, so it must be cheap."""
        ...

    def grant(self, token: str) -> Grant | None:
        """Return the rights of a token; None if it is not valid now."""
        ...
