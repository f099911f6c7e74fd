"""The server's configuration: one TOML file below one state root, as frozen, typed values."""

from pathlib import Path
from typing import Any, Literal

import msgspec
import tomlkit

from huai_schema.descriptor import check_module
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.program.configuration import (
    ConfigError,
    check_keys,
    closest,
    read_toml,
    rewrite,
)

DEFAULT_ROOT = Path("/var/lib/huai")
_NAME = "server.toml"


class UnknownModuleError(HuaiError):
    """A module that is not configured."""

    exit_code = ExitCode.UNKNOWN_MODULE


class Listen(msgspec.Struct, frozen=True):
    """Where `serve` listens, and what clients may cost."""

    host: str = "127.0.0.1"
    port: int = 8440
    max_transfers: int = 8
    """Fetches that run at a time; more wait in a queue."""
    request_timeout: float = 600.0
    """Seconds."""
    shutdown_grace: float = 60.0
    """Seconds that transfers get to finish when the server is asked to stop."""


class Module(msgspec.Struct, frozen=True):
    """One mirrored tree."""

    path: str
    content_urls: tuple[str, ...] = ()
    digest: Literal["now", "off"] = "now"
    exclude: tuple[str, ...] = ()
    one_file_system: bool = True
    owners: bool = True
    """Whether owner and group are part of the metadata."""


class ServerConfig(msgspec.Struct, frozen=True):
    """The whole file."""

    listen: Listen = Listen()
    modules: dict[str, Module] = msgspec.field(default_factory=dict)

    def module(self, name: str) -> Module:
        """One module, or `UnknownModuleError`."""
        try:
            return self.modules[name]
        except KeyError:
            raise UnknownModuleError(
                f"no module {name!r} is configured", hint=closest(name, self.modules)
            ) from None


def config_path(root: Path) -> Path:
    """Where the configuration stands."""
    return root / _NAME


def load(root: Path) -> ServerConfig:
    """Read the configuration below `root`; a missing file means: no modules yet."""
    path = config_path(root)
    table = read_toml(path)
    check_keys(str(path), table, ServerConfig.__struct_fields__)
    check_keys(f"{path}: [listen]", table.get("listen", {}), Listen.__struct_fields__)
    modules = table.get("modules", {})
    for name in modules if isinstance(modules, dict) else ():
        check_module(name)
        check_keys(f"{path}: [modules.{name}]", modules[name], Module.__struct_fields__)
    try:
        return msgspec.convert(table, ServerConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}", hint="see the README's configuration") from None


def add_module(root: Path, name: str, module: Module) -> None:
    """Write a new module into the configuration; `ConfigError` if the name is taken."""
    check_module(name)
    if name in load(root).modules:
        raise ConfigError(
            f"module {name!r} exists already",
            hint=f"change it in {config_path(root)}, or remove it",
        )
    defaults = msgspec.to_builtins(Module(path=""))
    values = msgspec.to_builtins(module)
    changed = {key: value for key, value in values.items() if value != defaults[key]}

    def put(text: str) -> str:
        document = tomlkit.parse(text)
        document.setdefault("modules", tomlkit.table(is_super_table=True))[name] = changed
        return tomlkit.dumps(document)

    rewrite(config_path(root), put)


def remove_module(root: Path, name: str) -> None:
    """Take a module out of the configuration."""
    load(root).module(name)

    def drop(text: str) -> str:
        document = tomlkit.parse(text)
        modules: Any = document["modules"]
        del modules[name]
        return tomlkit.dumps(document)

    rewrite(config_path(root), drop)
