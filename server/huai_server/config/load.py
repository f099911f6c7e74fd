"""The server's configuration, read from one TOML file below the state root."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from huai_program.configuration import (
    ConfigError,
    edit_modules,
    find_module,
    insert_module,
    read_toml,
)
from huai_program.tables import check_keys, to_toml
from huai_server.config.check import (
    SEE,
    check_proxies,
    check_tls,
    convert_downstreams,
    convert_module,
    convert_table,
)
from huai_server.config.mirrors import AllowedDownstream, MirrorSettings
from huai_server.config.tables import ATTR_KINDS, Fallback, Listen, Module, Signing, StaticFiles

if TYPE_CHECKING:
    from huai_program.notify.settings import Notify

_NAME = "server.toml"
_PACKAGED_ROOT = Path("/var/lib/huai")
_PACKAGED_FILE = Path("/etc/huai") / _NAME
"""A file of root, who runs programs that it names; the state root belongs to the service."""
_MODE = 0o644
"""The mode of the file: it has no secrets, and the mode of the state root limits access."""


class ServerConfig(msgspec.Struct, frozen=True):
    """The content of server.toml."""

    listen: Listen = Listen()
    modules: dict[str, Module] = msgspec.field(default_factory=dict)
    fallback: Fallback = Fallback()
    signing: Signing | None = None
    """None if commits are not signed."""
    static: StaticFiles = StaticFiles()
    """The default for modules without settings of their own."""
    notify: "Notify | None" = None
    """None if failures are not reported."""
    mirrors: MirrorSettings = MirrorSettings()
    allowed_downstreams: dict[str, AllowedDownstream] = msgspec.field(default_factory=dict)
    """The downstreams whose attestations are accepted, by name."""

    @property
    def fallback_modules(self) -> dict[str, Module]:
        """The modules that are served to unmodified rsync clients (`Module.in_fallback`)."""
        return {name: each for name, each in self.modules.items() if each.in_fallback}

    @property
    def attr_modules(self) -> dict[str, Module]:
        """The modules of the fallback that list from an attr tree, and not from the real tree."""
        return {
            name: each
            for name, each in self.fallback_modules.items()
            if each.fallback.kind in ATTR_KINDS
        }

    def module(self, name: str) -> Module:
        """Return the module `name`; raises `UnknownModuleError`."""
        return find_module(self.modules, name)

    def committed_module(self, name: str) -> Module:
        """Return a module that is committed here.

        Raises `ConfigError` for a relayed one, `UnknownModuleError` if it is not configured.
        """
        module = self.module(name)
        if module.relay:
            raise ConfigError(
                f"{name}: its commits are made upstream and relayed from {module.relay}",
                hint=f"run huai-client sync {module.relay_name or name}; `serve` relays the "
                "applied commit",
            )
        return module

    def relayed_module(self, name: str) -> Module:
        """Return a relayed module.

        Raises `ConfigError` for one committed here, `UnknownModuleError` if it is not configured.
        """
        module = self.module(name)
        if not module.relay:
            raise ConfigError(
                f"{name}: its commits are made here",
                hint=f"run huai-server commit {name}; or set relay in server.toml to the state "
                "root of huai-client",
            )
        return module

    def static_places(self, name: str) -> tuple[str, ...]:
        """Return the folders and buckets for the static files of the module `name`; may be empty.

        A web server does not check tokens, so a private module uses only places of its own.
        """
        module = self.module(name)
        if module.static.to is not None:
            return module.static.to
        return () if module.is_private else self.static.to or ()

    def static_endpoint(self, name: str) -> str:
        """Return the URL of the service with the module's buckets, or "" if it is not set."""
        return self.module(name).static.endpoint or self.static.endpoint


def default_root() -> Path:
    """Return /var/lib/huai for root or if it exists, else a folder in the user's state."""
    common = _PACKAGED_ROOT
    if os.geteuid() == 0 or common.exists():
        return common
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "huai"


def config_path(root: Path) -> Path:
    """Return the path of the configuration of the state root: `ROOT/server.toml`.

    For /var/lib/huai it is /etc/huai/server.toml, if that exists or cannot be examined.
    """
    if root == _PACKAGED_ROOT:
        try:
            _PACKAGED_FILE.stat()
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:
            return _PACKAGED_FILE  # reading it explains the error
        else:
            return _PACKAGED_FILE
    return root / _NAME


def load(root: Path) -> ServerConfig:
    """Read the configuration of the state root; without a file, all values are defaults.

    Raises `ConfigError` if the file is unreadable, malformed, or has a wrong key or value.
    """
    path = config_path(root)
    table = read_toml(path)
    check_keys(str(path), table, ServerConfig.__struct_fields__)
    check_tls(path, table)
    listen = convert_table(f"{path}: [listen]", table.get("listen", {}), Listen)
    if "proxies" in table.get("listen", {}):
        check_proxies(f"{path}: [listen]", listen.proxies)
    signing = None
    if "signing" in table:
        signing = convert_table(f"{path}: [signing]", table["signing"], Signing)
    fallback = convert_table(f"{path}: [fallback]", table.get("fallback", {}), Fallback)
    if "folder" not in table.get("fallback", {}):
        fallback = msgspec.structs.replace(fallback, folder=_fallback_folder(root))
    static = convert_table(f"{path}: [static]", table.get("static", {}), StaticFiles)
    modules = table.get("modules", {})
    if not isinstance(modules, dict):
        raise ConfigError(f"{path}: modules must hold tables", hint=SEE)
    converted = {name: convert_module(path, name, modules[name]) for name in modules}
    notify = None
    if "notify" in table:
        from huai_program.notify.settings import read_notify  # most configurations do without

        place = f"{path}: [notify]"
        notify = read_notify(place, table["notify"])
    mirrors = convert_table(f"{path}: [mirrors]", table.get("mirrors", {}), MirrorSettings)
    downstreams = convert_downstreams(path, table.get("allowed_downstreams", {}))
    return ServerConfig(listen, converted, fallback, signing, static, notify, mirrors, downstreams)


def _fallback_folder(root: Path) -> str:
    """Return the default folder for attr trees: `ROOT/fallback`, below /run for /var/lib/huai."""
    real = Path(os.path.realpath(root))
    return Fallback().folder if real == _PACKAGED_ROOT else str(real / "fallback")


def add_module(root: Path, name: str, module: Module) -> None:
    """Write a module into server.toml, without the keys that have their default value.

    Raises `ConfigError` if the name exists, or if the name, a value or the file is not valid.
    """
    path = config_path(root)
    defaults, values = to_toml(Module(path="")), to_toml(module)
    changed = {key: value for key, value in values.items() if value != defaults[key]}
    convert_module(path, name, {**changed, "path": module.path})
    load(root)
    hint = f"change it in {path}, or choose another name"
    insert_module(path, name, changed, hint=hint, mode=_MODE)


def remove_module(root: Path, name: str) -> None:
    """Remove a module from server.toml; its state and tree stay.

    Raises `UnknownModuleError` if it is not there, `ConfigError` if the file is not valid.
    """
    load(root).module(name)
    edit_modules(config_path(root), lambda modules: modules.pop(name, None), mode=_MODE)
