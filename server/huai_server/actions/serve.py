"""Serving the configured modules, and following changes of the configuration."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import asdict, replace

from huai_schema.errors import HuaiError
from huai_server.config.load import ServerConfig, config_path, load
from huai_server.config.mirrors import Mirrors
from huai_server.config.tables import Listen
from huai_server.config.volatile import Volatile
from huai_server.http.asgi.tls import TlsFiles
from huai_server.http.fallback_clients import FallbackSlots
from huai_server.http.server import OnStart, serve_http
from huai_server.http.settings import Content, Grant, ServeSettings, WebHook
from huai_server.relay.follow import Follower
from huai_server.signing.expiry import ExpiryWatch, SendNotification
from huai_server.state.file_stamp import file_stamp
from huai_server.state.paths import fallback_lock_file, mirrors_folder, module_places
from huai_server.state.tokens import Tokens

_log = logging.getLogger(__name__)


def serve(
    root: Path,
    *,
    host: str | None,
    port: int | None,
    on_start: OnStart,
    hand_over: Callable[[str], object],
    tell_of_signature: SendNotification,
) -> None:
    """Serve all modules until SIGTERM or SIGINT; `on_start` gets the bound address.

    `hand_over` brings a relayed module to the applied commit; `tell_of_signature` is that of
    `ExpiryWatch`.
    """
    config = load(root)
    overrides = {"host": host, "port": port}
    listen = replace(config.listen, **{k: v for k, v in overrides.items() if v is not None})
    with Follower(root, hand_over), ExpiryWatch(root, tell_of_signature):
        serve_http(settings_of(listen), ConfiguredModules(root, config), on_start)


def settings_of(listen: Listen) -> ServeSettings:
    """Return the settings of the file, with constants for the others."""
    values = asdict(listen)
    if listen.tls is not None:
        tls = listen.tls
        client_ca = Path(tls.client_ca) if tls.client_ca else None
        values["tls"] = TlsFiles(Path(tls.certificate), Path(tls.key), client_ca)
    return ServeSettings(**values, socket_path=None, max_body=8 << 20, queue=64)


class ConfiguredModules:
    """The modules of the configuration file, read again whenever the file was replaced."""

    def __init__(self, root: Path, config: ServerConfig) -> None:
        """Start from a configuration that was read just now."""
        self._root = root
        self._tokens = Tokens(root)
        self._stamp = file_stamp(config_path(root))
        self._use(config)

    def modules(self) -> Mapping[str, Path]:
        """Map the name of each public module to its bare repository."""
        self._refresh()
        return self._modules

    def private(self) -> Mapping[str, Path]:
        """Map the name of each private module to its bare repository."""
        self._refresh()
        return self._private

    def certificates(self) -> Mapping[str, frozenset[str]]:
        """Return the names of client certificates that open private modules."""
        self._refresh()
        return self._certificates

    def grant(self, token: str) -> Grant | None:
        """Return the rights of a token; None if it is not valid."""
        try:
            token_record = self._tokens.find(token)
        except HuaiError as error:
            _log.error("all tokens are refused: %s (%s)", error.message, error.hint)
            return None
        if token_record is None:
            return None
        return Grant(frozenset(token_record.modules), frozenset(token_record.scopes))

    def contents(self) -> Mapping[str, Content]:
        """Return the modules that serve content."""
        self._refresh()
        return self._contents

    def undigested(self) -> Mapping[str, Path]:
        """Return modules with late digests."""
        self._refresh()
        return self._undigested

    def fallback(self) -> Mapping[str, FallbackSlots]:
        """Return modules whose fallback limits its clients."""
        self._refresh()
        return self._fallback

    def content_urls(self) -> Mapping[str, tuple[str, ...]]:
        """Return the content URLs of relayed modules."""
        self._refresh()
        return self._content_urls

    def webhooks(self) -> Sequence[tuple[str, WebHook]]:
        """Return modules and the web hooks that are notified of their commits."""
        self._refresh()
        return self._webhooks

    def mirrors(self) -> Mirrors:
        """Return the mirrors whose attestations are accepted."""
        self._refresh()
        return self._mirrors

    def _refresh(self) -> None:
        stamp = file_stamp(config_path(self._root))
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._use(load(self._root))
            except HuaiError as error:
                # A typing error must not take down working modules.
                _log.error("the former modules stay in use: %s (%s)", error.message, error.hint)

    def _use(self, config: ServerConfig) -> None:
        modules = config.modules
        places = {name: module_places(self._root, name).repository for name in modules}
        self._modules = {name: places[name] for name in modules if not modules[name].is_private}
        self._private = {name: places[name] for name in modules if modules[name].is_private}
        self._certificates = {
            name: frozenset(each.certificates)
            for name, each in modules.items()
            if each.certificates
        }
        self._contents = {
            name: Content(places[name], os.fsencode(each.path), Volatile(each.volatile))
            for name, each in modules.items()
            if each.serve_content
        }
        self._mirrors = Mirrors(
            mirrors_folder(self._root), config.allowed_downstreams, config.mirrors
        )
        self._undigested = {
            name: places[name] for name, each in modules.items() if each.digest == "later"
        }
        self._fallback = _fallback_slots(config)
        self._content_urls = {name: each.relay_urls for name, each in modules.items()}
        self._webhooks = [
            (name, WebHook(hook.url, hook.secret_file, hook.internal))
            for name, each in modules.items()
            for hook in each.webhooks
        ]


def _fallback_slots(config: ServerConfig) -> dict[str, FallbackSlots]:
    folder, usual = Path(config.fallback.folder), config.fallback.max_connections
    slots = {}
    for name, module in config.fallback_modules.items():
        own = module.fallback.max_connections
        limit = usual if own is None else own
        if limit:
            slots[name] = FallbackSlots(fallback_lock_file(folder, name), limit)
    return slots
