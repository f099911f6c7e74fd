"""The client's configuration: one TOML file below one state root, as frozen, typed values."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from huai_client.config.attest import NO_ATTEST, Attest, convert_attest
from huai_client.config.content_place import ContentPlace
from huai_client.config.hooks import NO_HOOKS, Hooks
from huai_client.config.modes import Modes
from huai_client.config.proofs import Proof, convert_proofs
from huai_client.config.tls import Tls, convert_tls
from huai_program.configuration import ConfigError, find_module, read_toml, rewrite
from huai_program.durations import Duration
from huai_program.sizes import SomeBytes
from huai_program.tables import PATH, Example, check_keys, convert, example, to_toml
from huai_schema.codec.descriptor import check_module
from huai_schema.codec.publish_rules import own_rules, volatile_rules
from huai_schema.errors import FormatError

if TYPE_CHECKING:
    from huai_program.notify.settings import Notify

_NAME = "client.toml"


class Module(msgspec.Struct, frozen=True):
    """One downstream tree."""

    url: Annotated[
        str | Annotated[tuple[str, ...], Meta(min_length=1)],
        Example('"http://mirror.example:8440"'),
    ]
    """The upstream's base address, or the URL of its metadata repository; several: best first."""
    dest: Annotated[str, Example('"/srv/copy/tools"')]
    upstream_name: Annotated[str, Example('"tools"')] = ""
    """What the upstream calls the module; empty: the same name as here."""
    content_urls: Annotated[
        tuple[str | ContentPlace, ...],
        Example(
            '["rsync://mirror.example/tools", '
            '{ url = "https://backup.example/tools", priority = 2 }]'
        ),
    ] = ()
    """Instead of those that the upstream names."""
    keys: Annotated[tuple[str, ...], Example('["ssh-ed25519 AAAA..."]')] = ()
    """Public keys of the upstream, whose commits are believed."""
    signers: Annotated[str, Example('"/etc/huai/allowed_signers"')] = ""
    """The path of a file of allowed signers with such keys."""
    threshold: Annotated[int, Meta(ge=1, le=16)] = 1
    """How many of them have to sign a commit, at least."""
    verify: Literal["require", "pin", "off"] = "pin"
    """Whether commits have to be signed; `pin`: if the first one was."""
    undigested: Literal["refuse", "allow"] = "refuse"
    """Whether, if keys are named, a file may be fetched that has no digest."""
    mirrors: Literal["off", "auto"] = "off"
    """Whether others that the upstream names are asked for what did not come from these."""
    streams: Annotated[int, Meta(ge=1, le=64)] = 2
    batch_files: Annotated[int, Meta(ge=1)] = 1_000_000
    batch_size: SomeBytes = SomeBytes(1 << 30)
    connections: Annotated[int, Meta(ge=0)] = 0
    """To each host, of all runs of this client; 0: 4, or as many as there are streams."""
    queue_time: Annotated[Duration, Example('"1h", or 3600')] = Duration("1h")
    """How long to stand in line at an upstream that is full, spelt like `delete_after`."""
    bwlimit: Annotated[int, Meta(ge=0)] = 0
    """KiB/s of all streams together; 0: no limit."""
    rsync_options: Annotated[tuple[str, ...], Example('["--compress"]')] = ()
    http_headers: Annotated[str, Example('"/etc/huai/headers"')] = ""
    """The path of a file with headers for `content_urls` of HTTP, such as a token."""
    max_delete: Annotated[str | int, Example('"10%", or 5000')] = "10%"
    """A count, or a share of the entries; a share never stops fewer than 1000 deletions."""
    max_delete_in: Annotated[dict[str, str | int], Example('{"/dists" = "5%", "/pool" = 5000}')] = (
        msgspec.field(default_factory=dict)
    )
    """By directory ("/dists", or "/*": every top-level one), a count or a share."""
    protect: Annotated[tuple[str, ...], Example('["/project/trace/my.host"]')] = ()
    """Patterns as of rsync's --exclude: paths that are never touched."""
    in_place: Annotated[tuple[str, ...], Example('["/images/*.img"]')] = ()
    """Patterns of large files that are changed where they stand."""
    trash: Annotated[Duration, Example('"7d", "1w", or 604800')] = Duration("0")
    """How long what was deleted or replaced is kept in DEST, spelt like `delete_after`; 0: not."""
    delete_after: Annotated[Duration, Example('"2h", or 7200')] = Duration("0")
    """How long what is gone stays: seconds, or a number and s, m, h, d or w."""
    max_age: Annotated[Duration, Example('"2d", or 172800')] = Duration("0")
    """A commit that is older is warned of, spelt like `delete_after`; 0: never."""
    max_entries: Annotated[int, Meta(ge=0)] = 0
    """A commit that announces more is refused: reading it costs memory and time in proportion.

    0: 100,000 more than are applied, and one for each byte of metadata."""
    max_bytes: SomeBytes = SomeBytes(1 << 50)
    """The same for the sizes of all files."""
    duplicates: Literal["copy", "hardlink"] = "copy"
    """How a file gets content that stays under another name too; a copy is a reflink if it can."""
    reuse_from: Annotated[tuple[str, ...], Example('["debian"]')] = ()
    """Names of other modules, whose trees may have the content too."""
    reuse_check: Literal["stat", "digest"] = "stat"
    """What proves that a local file is still what the applied commit says."""
    publish: Annotated[tuple[str, ...], Example('["pointers latest.txt"]')] = ()
    """Publish rules (FORMAT.md); they come before the upstream's."""
    volatile: Annotated[tuple[str, ...] | None, Example('["/status/beat"]')] = None
    """Patterns of publish rules: files that change without a commit; empty: none; absent: those
    that the upstream names, and those that are known."""
    filter: Annotated[tuple[str, ...], Example('["- *.iso"]')] = ()
    """What is mirrored: rules of rsync's --filter; the files they merge count from ROOT."""
    keep_commits: Annotated[int, Meta(ge=0, le=1000)] = 10
    """How many commits that were applied before stay here, for `log`, `diff` and `why`."""
    owners: bool = True
    """Set owner and group, where this user may."""
    modes: Modes = Modes.SAFE
    """What is done about set-id bits, and what everybody may write to."""
    safe_links: bool = False
    """Leave out symlinks that lead out of the tree, as rsync's option of this name does."""
    allow_networks: Annotated[tuple[str, ...], Example('["10.20.0.0/16"]')] = ()
    """Internal networks that URLs may lead to which the upstream or a redirection names."""
    timeout: Annotated[int, Meta(ge=1, le=86_400)] = 600
    """Seconds without any data after which a connection counts as dead."""
    tls: Tls | None = None
    """Own certificates, for the hosts of `url` and `content_urls`."""
    hooks: Hooks = NO_HOOKS
    proofs: dict[str, Proof] = msgspec.field(default_factory=dict)
    """By profile, what has to accept the pointers of such a repository."""
    attest: Attest = NO_ATTEST
    """What is said of the tree after a sync, and to whom."""

    @property
    def protected(self) -> tuple[str, ...]:
        """`protect`, and huai's own file in the tree."""
        return (*self.protect, *(("/huai-attestation",) if self.attest.on else ()))

    @property
    def urls(self) -> tuple[str, ...]:
        """Where the metadata are, best first."""
        return (self.url,) if isinstance(self.url, str) else self.url

    @property
    def content_places(self) -> tuple[ContentPlace, ...]:
        """The content URLs with their ranks, in the order of the file."""
        return tuple(map(ContentPlace.of, self.content_urls))

    @property
    def named_urls(self) -> tuple[str, ...]:
        """All addresses of the table: metadata and content."""
        return (*self.urls, *(place.url for place in self.content_places))


FOR_ONE_RUN = ("streams", "batch_files", "batch_size", "connections", "queue_time", "timeout")
"""The keys that `-o` takes, beside `rsync_options`: how content is transferred."""


class Watch(msgspec.Struct, frozen=True):
    """How `watch` does its work."""

    spread: Annotated[Duration, Example('"30s", or 30')] = Duration("1s")
    """Within how long after an event a sync is begun, at a moment that chance picks."""
    poll: Annotated[Duration, Example('"10m", or 600')] = Duration("10m")
    """How often a module is synced that no upstream tells of."""
    parallel: Annotated[int, Meta(ge=1, le=64)] = 2
    """How many modules are synced at a time."""


class StatusFiles(msgspec.Struct, frozen=True):
    """Where each sync writes down how the modules stand."""

    prometheus: Annotated[
        str, Meta(pattern=PATH), Example('"/var/lib/prometheus/node-exporter/huai.prom"')
    ] = ""
    """The path of a file for node_exporter's textfile collector; empty: none."""
    html: Annotated[str, Meta(pattern=PATH), Example('"/var/www/html/status"')] = ""
    """The path of a folder of a web server, for a page; empty: none."""


NO_STATUS_FILES = StatusFiles()


class ClientConfig(msgspec.Struct, frozen=True):
    """The whole file."""

    modules: dict[str, Module] = msgspec.field(default_factory=dict)
    watch: Watch = Watch()
    status: StatusFiles = NO_STATUS_FILES
    notify: "Notify | None" = None
    """None: nobody is told of failures."""
    attest: Attest = NO_ATTEST
    """What modules say that have no table of their own; each has it already."""

    def module(self, name: str) -> Module:
        """One module, or `UnknownModuleError`."""
        return find_module(self.modules, name)


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
    if not isinstance(modules, dict):
        raise ConfigError(
            f"{path}: modules: a table was expected", hint="[modules.NAME] begins one"
        )
    common = (table["attest"],) if "attest" in table else ()
    named = {name: _module(path, name, modules[name], common) for name in modules}
    watch = convert(f"{path}: [watch]", table.get("watch", {}), Watch)
    status = convert(f"{path}: [status]", table.get("status", {}), StatusFiles)
    return ClientConfig(named, watch, status, _notify(path, table))


def _notify(path: Path, table: dict[str, Any]) -> "Notify | None":
    if "notify" not in table:
        return None
    from huai_program.notify.settings import read_notify  # most have no use for it

    return read_notify(f"{path}: [notify]", table["notify"])


def _module(path: Path, name: str, table: object, common: tuple[object, ...] = ()) -> Module:
    """One module's table, checked as far as that costs next to nothing.

    `common`: the table `[attest]`, if there is one.
    """
    place = f"{path}: [modules.{name}]"
    check_keys(place, table, Module.__struct_fields__)
    assert isinstance(table, dict)  # noqa: S101 - check_keys
    below = dict(table)
    if "hooks" in table:
        below["hooks"] = convert(f"{place[:-1]}.hooks]", table["hooks"], Hooks)
    if "tls" in table:
        below["tls"] = convert_tls(f"{place[:-1]}.tls]", table["tls"])
    if "proofs" in table:
        below["proofs"] = convert_proofs(f"{place[:-1]}.proofs", table["proofs"])
    if "attest" in table or common:
        own = (table["attest"],) if "attest" in table else ()
        below["attest"] = convert_attest(f"{place[:-1]}.attest]", (*common, *own), name)
    module = convert(place, below, Module)
    key = "publish"
    try:
        check_config_name(name)
        own_rules(module.publish)
        key = "volatile"
        volatile_rules(module.volatile or ())
    except FormatError as error:
        raise ConfigError(f"{place}: {key}: {error.reason}", hint=example(Module, key)) from None
    except ConfigError as error:
        raise ConfigError(f"{place}: {error.message}", hint=error.hint) from None
    return module


def check_config_name(name: str) -> str:
    """`name` itself, if a module can be called so here; else `ConfigError`."""
    try:
        return check_module(name)
    except FormatError as error:
        raise ConfigError(error.reason, hint="for example: debian, or cpan-2.0") from None


def no_modules(root: Path) -> ConfigError:
    """The error where something is to be done for all modules, and there is none."""
    path = config_path(root)
    where = f"{path} has no module" if path.exists() else f"there is no {path}"
    return ConfigError(
        f"{where}: nothing is mirrored",
        hint="run: huai-client add NAME URL DEST; or give the state of another user with --root",
    )


def make_root(root: Path) -> None:
    """Make the state root if it is missing, for its owner alone."""
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{root}: {error.strerror}", hint="choose another state root with --root"
        ) from error


def add_module(root: Path, name: str, module: Module) -> None:
    """Write a new module into the configuration; `ConfigError` if the name is taken."""
    import tomlkit  # loads slowly, and a sync never writes configuration

    check_config_name(name)
    if name in load(root).modules:
        raise ConfigError(
            f"module {name!r} exists already",
            hint=f"change it in {config_path(root)}, or remove it",
        )
    defaults, values = to_toml(Module(url="", dest="")), to_toml(module)
    needed = ("url", "dest")
    changed = {
        key: value for key, value in values.items() if value != defaults[key] or key in needed
    }

    def put(text: str) -> str:
        document = tomlkit.parse(text)
        document.setdefault("modules", tomlkit.table(is_super_table=True))[name] = changed
        return tomlkit.dumps(document)

    rewrite(config_path(root), put, mode=0o600)


def remove_module(root: Path, name: str) -> None:
    """Take a module out of the configuration."""
    import tomlkit  # as above

    load(root).module(name)

    def drop(text: str) -> str:
        document = tomlkit.parse(text)
        modules: Any = document["modules"]
        del modules[name]
        return tomlkit.dumps(document)

    rewrite(config_path(root), drop, mode=0o600)
