"""Serving the configured modules, and following changes of the configuration."""

import logging
from pathlib import Path

from msgspec.structs import replace

from huai_schema.errors import HuaiError
from huai_server.config.load import ServerConfig, config_path, load
from huai_server.config.mirrors import Mirrors
from huai_server.http.fallback_clients import FallbackSlots
from huai_server.http.server import OnStart, serve_http
from huai_server.http.settings import Grant, Served
from huai_server.relay.follow import Follower, HandOver
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
    hand_over: HandOver,
    notify_of_signature: SendNotification,
) -> None:
    """Serve all modules until SIGTERM or SIGINT; raises `ConfigError`.

    `host` and `port` replace those of server.toml.  `on_start` is called with the bound address,
    `hand_over` with a relayed module whose applied commit changed, and `notify_of_signature` as
    `ExpiryWatch` says.
    """
    config = load(root)
    overrides = {"host": host, "port": port}
    options = {key: value for key, value in overrides.items() if value is not None}
    listen = replace(config.listen, **options)
    with Follower(root, hand_over), ExpiryWatch(root, notify_of_signature):
        serve_http(listen, ConfiguredModules(root, config), on_start)


class ConfiguredModules:
    """The modules of the configuration file, read again whenever the file was replaced."""

    def __init__(self, root: Path, config: ServerConfig) -> None:
        """Start from a configuration that was read just now."""
        self._root = root
        self._tokens = Tokens(root)
        self._place = config_path(root)
        self._stamp = file_stamp(self._place)
        self._served = served_modules(root, config)

    def served(self) -> Served:
        """Return the modules of the present file; after an error, which is logged, the former."""
        stamp = file_stamp(self._place)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._served = served_modules(self._root, load(self._root))
            except HuaiError as error:
                # A typing error must not take down working modules.
                _log.error("the former modules stay in use: %s (%s)", error.message, error.hint)
        return self._served

    def grant(self, token: str) -> Grant | None:
        """Return the rights of a token; None if it is not valid.

        If no token can be read, logs the error and returns None.
        """
        try:
            token_record = self._tokens.find(token)
        except HuaiError as error:
            _log.error("all tokens are refused: %s (%s)", error.message, error.hint)
            return None
        if token_record is None:
            return None
        return Grant(frozenset(token_record.modules), frozenset(token_record.scopes))


def served_modules(root: Path, config: ServerConfig) -> Served:
    """Return the modules of a configuration, and what `serve` needs of each."""
    modules = config.modules
    places = {name: module_places(root, name).repository for name in modules}
    return Served(
        modules={name: places[name] for name, each in modules.items() if not each.is_private},
        private={name: places[name] for name, each in modules.items() if each.is_private},
        certificates={
            name: frozenset(each.certificates)
            for name, each in modules.items()
            if each.certificates
        },
        settings=modules,
        fallback=_fallback_slots(config),
        mirrors=Mirrors(mirrors_folder(root), config.allowed_downstreams, config.mirrors),
    )


def _fallback_slots(config: ServerConfig) -> dict[str, FallbackSlots]:
    """Return the lock file and limit of connections of each module of the fallback with a limit."""
    folder, usual = Path(config.fallback.folder), config.fallback.max_connections
    slots = {}
    for name, module in config.fallback_modules.items():
        own = module.fallback.max_connections
        limit = usual if own is None else own
        if limit:
            slots[name] = FallbackSlots(fallback_lock_file(folder, name), limit)
    return slots
