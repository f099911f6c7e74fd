"""The client's configuration: one TOML file below one state root, as frozen, typed values."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from huai_client.modes import Modes
from huai_schema.descriptor import check_module
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.program.configuration import (
    ConfigError,
    check_keys,
    closest,
    read_toml,
    rewrite,
)
from huai_schema.publishing import own_rules

_NAME = "client.toml"


class UnknownModuleError(HuaiError):
    """A module that is not configured."""

    exit_code = ExitCode.UNKNOWN_MODULE


class Module(msgspec.Struct, frozen=True):
    """One downstream tree."""

    url: str | Annotated[tuple[str, ...], Meta(min_length=1)]
    """The upstream's base address, or the URL of its metadata repository; several: best first."""
    dest: str
    upstream_name: str = ""
    """What the upstream calls the module; empty: the same name as here."""
    content_urls: tuple[str, ...] = ()
    """Instead of those that the upstream names."""
    streams: int = 2
    batch_files: int = 1000
    batch_size: int = 1 << 30
    """Bytes."""
    connections: Annotated[int, Meta(ge=0)] = 0
    """To each host, of all runs of this client; 0: 4, or as many as there are streams."""
    queue_time: Annotated[str, Meta(pattern=r"^[0-9]{1,9}[smhd]?$")] = "1h"
    """How long to stand in line at an upstream that is full, spelt like `delete_after`."""
    bwlimit: int = 0
    """KiB/s of all streams together; 0: no limit."""
    rsync_options: tuple[str, ...] = ()
    max_delete: str = "10%"
    """A count, or a share of the entries; a share never stops fewer than 1000 deletions."""
    max_delete_in: dict[str, str | int] = msgspec.field(default_factory=dict)
    """By directory ("/dists", or "/*": every top-level one), a count or a share."""
    protect: tuple[str, ...] = ()
    """Patterns as of rsync's --exclude: paths that are never touched."""
    trash: Annotated[str, Meta(pattern=r"^[0-9]{1,9}[smhd]?$")] = "0"
    """How long what was deleted or replaced is kept in DEST, spelt like `delete_after`; 0: not."""
    delete_after: Annotated[str, Meta(pattern=r"^[0-9]{1,9}[smhd]?$")] = "0"
    """How long what is gone stays: seconds, or a number and s, m, h or d."""
    max_age: Annotated[str, Meta(pattern=r"^[0-9]{1,9}[smhd]?$")] = "0"
    """A commit that is older is warned of, spelt like `delete_after`; 0: never."""
    duplicates: Literal["copy", "hardlink"] = "copy"
    """How a file gets content that stays under another name too; a copy is a reflink if it can."""
    reuse_from: tuple[str, ...] = ()
    """Names of other modules, whose trees may have the content too."""
    reuse_check: Literal["stat", "digest"] = "stat"
    """What proves that a local file is still what the applied commit says."""
    publish: tuple[str, ...] = ()
    """Publish rules (FORMAT.md); they come before the upstream's."""
    filter: tuple[str, ...] = ()
    """What is mirrored: rules of rsync's --filter; the files they merge count from ROOT."""
    keep_commits: Annotated[int, Meta(ge=0, le=1000)] = 10
    """How many commits that were applied before stay here, for `log`, `diff` and `why`."""
    owners: bool = True
    """Set owner and group, where this user may."""
    modes: Modes = Modes.SAFE
    """What is done about set-id bits, and what everybody may write to."""
    safe_links: bool = False
    """Leave out symlinks that lead out of the tree, as rsync's option of this name does."""
    timeout: int = 600
    """Seconds without any data after which a connection counts as dead."""

    @property
    def urls(self) -> tuple[str, ...]:
        """Where the metadata are, best first."""
        return (self.url,) if isinstance(self.url, str) else self.url


class ClientConfig(msgspec.Struct, frozen=True):
    """The whole file."""

    modules: dict[str, Module] = msgspec.field(default_factory=dict)

    def module(self, name: str) -> Module:
        """One module, or `UnknownModuleError`."""
        try:
            return self.modules[name]
        except KeyError:
            raise UnknownModuleError(
                f"no module {name!r} is configured", hint=closest(name, self.modules)
            ) from None


def default_root() -> Path:
    """/var/lib/huai-client for root, the user's own state folder for anybody else."""
    if os.geteuid() == 0:
        return Path("/var/lib/huai-client")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "huai-client"


def config_path(root: Path) -> Path:
    """Where the configuration stands."""
    return root / _NAME


def load(root: Path) -> ClientConfig:
    """Read the configuration below `root`; a missing file means: no modules yet."""
    path = config_path(root)
    table = read_toml(path)
    check_keys(str(path), table, ClientConfig.__struct_fields__)
    modules = table.get("modules", {})
    for name in modules if isinstance(modules, dict) else ():
        check_module(name)
        check_keys(f"{path}: [modules.{name}]", modules[name], Module.__struct_fields__)
    try:
        config = msgspec.convert(table, ClientConfig)
        for module in config.modules.values():
            own_rules(module.publish)
    except (msgspec.ValidationError, FormatError, UnicodeError) as error:
        raise ConfigError(f"{path}: {error}", hint="see the README's configuration") from None
    return config


def make_root(root: Path) -> None:
    """Make the state root if it is missing."""
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{root}: {error.strerror}", hint="choose another state root with --root"
        ) from error


def add_module(root: Path, name: str, module: Module) -> None:
    """Write a new module into the configuration; `ConfigError` if the name is taken."""
    import tomlkit  # loads slowly, and a sync never writes configuration

    check_module(name)
    if name in load(root).modules:
        raise ConfigError(
            f"module {name!r} exists already",
            hint=f"change it in {config_path(root)}, or remove it",
        )
    defaults = msgspec.to_builtins(Module(url="", dest=""))
    values = msgspec.to_builtins(module)
    changed = {key: value for key, value in values.items() if value != defaults[key]}

    def put(text: str) -> str:
        document = tomlkit.parse(text)
        document.setdefault("modules", tomlkit.table(is_super_table=True))[name] = changed
        return tomlkit.dumps(document)

    rewrite(config_path(root), put)


def remove_module(root: Path, name: str) -> None:
    """Take a module out of the configuration."""
    import tomlkit  # as above

    load(root).module(name)

    def drop(text: str) -> str:
        document = tomlkit.parse(text)
        modules: Any = document["modules"]
        del modules[name]
        return tomlkit.dumps(document)

    rewrite(config_path(root), drop)
