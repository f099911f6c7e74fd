"""The client's configuration: one TOML file in the state root, as frozen, typed values."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from huai_client.config.hooks import NO_HOOKS, Hooks, Proof, convert_proofs
from huai_client.config.modes import Modes
from huai_client.config.tls import Tls, convert_tls
from huai_program.configuration import (
    ConfigError,
    edit_modules,
    find_module,
    insert_module,
    read_toml,
)
from huai_program.durations import Duration
from huai_program.sizes import SomeBytes
from huai_program.tables import PATH, Example, check_keys, convert, example, to_toml
from huai_program.urls import masked
from huai_schema.codec.module_name import check_module
from huai_schema.errors import FormatError

if TYPE_CHECKING:
    from huai_program.notify.settings import Notify

_MODULE = "{name}"


class Attest(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings by which a downstream attests its serial and URLs (docs/MIRRORS.md)."""

    key: Annotated[str, Meta(pattern=PATH), Example('"/etc/huai/attest"')] = ""
    """The path of a file with a private key; empty disables attestations."""
    urls: Annotated[
        tuple[str, ...], Meta(max_length=8), Example('["https://mirror.example/{name}"]')
    ] = ()
    """The URLs at which the tree is served; without any there are no attestations."""
    send: Annotated[bool, Example("true")] = True
    """True to send it to the upstream; the file in the tree is written anyway."""
    every: Annotated[Duration, Example('"1h", or 3600')] = Duration("1h")
    """The interval at which it is sent again while nothing is new."""

    @property
    def on(self) -> bool:
        """True if attestations are enabled."""
        return bool(self.key and self.urls)


NO_ATTEST = Attest()


def convert_attest(place: str, tables: tuple[object, ...], name: str) -> Attest:
    """Convert tables, of which a later one takes precedence; `name` replaces `{name}` in URLs.

    Raises `ConfigError` with `place` and the key that is wrong.
    """
    values: dict[str, object] = {}
    for table in tables:
        check_keys(place, table, Attest.__struct_fields__)
        assert isinstance(table, dict)  # noqa: S101 - check_keys
        values |= table
    attest = convert(place, values, Attest)
    urls = tuple(url.replace(_MODULE, name) for url in attest.urls)
    if urls:
        _check_urls(place, urls)
    return msgspec.structs.replace(attest, urls=urls)


def _check_urls(place: str, urls: tuple[str, ...]) -> None:
    """Raise `ConfigError`, with `place`, for a URL not to mirror from, or listed twice."""
    from huai_schema.codec.attestation import is_served_url  # few have this table

    for url in urls:
        if not is_served_url(url) or urls.count(url) > 1:
            raise ConfigError(
                f"{place}: urls: {masked(url)!r} is not a URL to mirror from, or is listed twice",
                hint=f"for example: {example(Attest, 'urls')}",
            )


class RankedUrl(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An element of `content_urls`; a plain text is its URL."""

    url: str
    priority: Annotated[int, Meta(ge=1, le=999_999)] = 1
    """The rank: the lowest numbers are used first, the others for what is missing then."""
    share: Annotated[int, Meta(ge=0, le=65_535)] = 0
    """The weight among URLs of equal priority; 0 for files that the others do not deliver."""

    @classmethod
    def of(cls, element: "str | RankedUrl") -> "RankedUrl":
        """Convert an element of `content_urls`; a plain text has the usual rank."""
        return cls(element) if isinstance(element, str) else element


_NAME = "client.toml"


def is_daemon(url: str) -> bool:
    """Return True for the URL of an rsync daemon, which has no metadata."""
    return url[:8].lower() == "rsync://"


class Module(msgspec.Struct, frozen=True):
    """The settings of a module: a table `[modules.NAME]` of client.toml."""

    url: Annotated[
        str | Annotated[tuple[str, ...], Meta(min_length=1)],
        Example('"http://mirror.example:8440"'),
    ]
    """The upstream's base address, or its metadata repository's URL; or several, best first."""
    dest: Annotated[str, Example('"/srv/copy/tools"')]
    upstream_name: Annotated[str, Example('"tools"')] = ""
    """The upstream's name of the module; empty if it is the same."""
    content_urls: Annotated[
        tuple[str | RankedUrl, ...],
        Example(
            '["rsync://mirror.example/tools", '
            '{ url = "https://backup.example/tools", priority = 2 }]'
        ),
    ] = ()
    """Content URLs, in place of those that the upstream names."""
    source: Literal["", "rsync"] = ""
    """How `url` is listed without huai: `rsync` over ssh for HOST:PATH; empty: by its kind."""
    list_every: Annotated[Duration, Example('"1h", or 3600')] = Duration("1h")
    """The time between two lists of an upstream without huai, if no file there tells what is new;
    spelt like `delete_after`."""
    list_command: Annotated[
        tuple[str, ...], Example('["rclone", "lsjson", "-R", "remote:tools"]')
    ] = ()
    """A program and its arguments that list an upstream without huai, as lines of JSON."""
    list_url: Annotated[str, Example('"https://mirror.example/tools/mtree"')] = ""
    """The URL of such a list on a web server."""
    probe: Annotated[str, Example('"project/trace/master"')] = ""
    """The path of a file that an upstream without huai writes with each update; empty: found by
    its name."""
    keys: Annotated[tuple[str, ...], Example('["ssh-ed25519 AAAA..."]')] = ()
    """The upstream's public keys, by which commits are verified."""
    signers: Annotated[str, Example('"/etc/huai/allowed_signers"')] = ""
    """The path of a file of allowed signers with such keys."""
    threshold: Annotated[int, Meta(ge=1, le=16)] = 1
    """The number of keys that have to sign a commit, at least."""
    verify: Literal["require", "pin", "off"] = "pin"
    """The requirement of signatures; `pin` requires them if the first commit was signed."""
    undigested: Literal["refuse", "allow"] = "refuse"
    """The treatment of files without a digest, if keys are named."""
    mirrors: Literal["off", "auto", "attested"] = "off"
    """The use of mirrors: those that the upstream names, for files that these URLs did not deliver;
    or those that attested the serial, before the upstream."""
    streams: Annotated[int, Meta(ge=1, le=64)] = 2
    batch_files: Annotated[int, Meta(ge=1)] = 1_000_000
    batch_size: SomeBytes = SomeBytes(1 << 30)
    connections: Annotated[int, Meta(ge=0)] = 0
    """The limit for each host and all runs of this client; 0: 4, or one for each stream."""
    queue_time: Annotated[Duration, Example('"1h", or 3600')] = Duration("1h")
    """The time to wait at an upstream that is full, spelt like `delete_after`."""
    bwlimit: Annotated[int, Meta(ge=0)] = 0
    """The limit of all streams together in KiB/s; 0 for no limit."""
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
    """Paths that are never touched, as patterns of rsync's --exclude."""
    in_place: Annotated[tuple[str, ...], Example('["/images/*.img"]')] = ()
    """Patterns of large files that are changed in place."""
    trash: Annotated[Duration, Example('"7d", "1w", or 604800')] = Duration("0")
    """The time to keep deleted and replaced files in DEST, spelt like `delete_after`; or 0."""
    delete_after: Annotated[Duration, Example('"2h", or 7200')] = Duration("0")
    """The delay of deletions: seconds, or a number and s, m, h, d or w."""
    max_age: Annotated[Duration, Example('"2d", or 172800')] = Duration("0")
    """The age above which a commit causes a warning, spelt like `delete_after`; 0: never."""
    max_entries: Annotated[int, Meta(ge=0)] = 0
    """The limit of entries in a commit: reading it costs memory and time in proportion.

    0: 100,000 more than are applied, and one for each byte of metadata."""
    max_bytes: SomeBytes = SomeBytes(1 << 50)
    """The limit of the sizes of all files."""
    duplicates: Literal["copy", "hardlink"] = "copy"
    """The way to make a file whose content stays under another name too; copies are reflinks
    where possible."""
    reuse_from: Annotated[tuple[str, ...], Example('["debian"]')] = ()
    """Names of other modules whose trees may have the content too."""
    reuse_check: Literal["stat", "digest"] = "stat"
    """The proof that a local file still matches the applied commit."""
    publish: Annotated[tuple[str, ...], Example('["pointers latest.txt"]')] = ()
    """Publish rules (FORMAT.md); they come before the upstream's."""
    volatile: Annotated[tuple[str, ...] | None, Example('["/status/beat"]')] = None
    """Patterns of files that change without a commit; if absent, those that the upstream names and
    those in huai's list."""
    filter: Annotated[tuple[str, ...], Example('["- *.iso"]')] = ()
    """Rules of rsync's --filter for the mirrored paths; merged files are relative to ROOT."""
    keep_commits: Annotated[int, Meta(ge=0, le=1000)] = 10
    """The number of former commits to keep for `log`, `diff` and `why`."""
    owners: bool = True
    """Set owner and group, where this user may."""
    modes: Modes = Modes.SAFE
    """The policy for set-id bits and world-writable modes."""
    safe_links: bool = False
    """Leave out symlinks that lead out of the tree, as rsync's --safe-links does."""
    allow_networks: Annotated[tuple[str, ...], Example('["10.20.0.0/16"]')] = ()
    """Internal networks that URLs of the upstream and redirects may lead to."""
    timeout: Annotated[int, Meta(ge=1, le=86_400)] = 600
    """The seconds without any data after which a connection counts as dead."""
    tls: Tls | None = None
    """Certificates for the hosts of `url` and `content_urls`."""
    hooks: Hooks = NO_HOOKS
    proofs: dict[str, Proof] = msgspec.field(default_factory=dict)
    """The programs that have to accept the pointers of a repository, by profile."""
    attest: Attest = NO_ATTEST
    """The attestation of the tree after a sync."""

    @property
    def protected(self) -> tuple[str, ...]:
        """`protect`, and with attestations huai's own file in the tree."""
        return (*self.protect, *(("/huai-attestation",) if self.attest.on else ()))

    @property
    def urls(self) -> tuple[str, ...]:
        """The metadata URLs, best first."""
        return (self.url,) if isinstance(self.url, str) else self.url

    @property
    def ranked_urls(self) -> tuple[RankedUrl, ...]:
        """The configured content URLs with ranks, else the URLs of an upstream that is listed."""
        by_setting = self.list_source or self.source
        listed = (url for url in self.urls if by_setting or is_daemon(url))
        return tuple(map(RankedUrl.of, self.content_urls or listed))

    @property
    def named_urls(self) -> tuple[str, ...]:
        """All addresses of the table: metadata, content and list."""
        listed = (self.list_url,) if self.list_url else ()
        return (*self.urls, *(each.url for each in self.ranked_urls), *listed)

    @property
    def list_source(self) -> tuple[str, ...]:
        """The program and arguments that print the upstream's list, or the list's URL, or empty."""
        return (self.list_url,) if self.list_url else self.list_command


FOR_ONE_RUN = ("streams", "batch_files", "batch_size", "connections", "queue_time", "timeout")
"""The keys that `-o` takes besides `rsync_options`: settings of the transfer."""


class WatchSettings(msgspec.Struct, frozen=True):
    """The settings of `watch`."""

    spread: Annotated[Duration, Example('"30s", or 30')] = Duration("1s")
    """The time after an event within which a sync starts, at a random moment."""
    poll: Annotated[Duration, Example('"10m", or 600')] = Duration("10m")
    """The interval of syncs of a module without events."""
    parallel: Annotated[int, Meta(ge=1, le=64)] = 2
    """The number of modules to sync at a time."""


class StatusFiles(msgspec.Struct, frozen=True):
    """The files to which each sync writes the status of the modules."""

    prometheus: Annotated[
        str, Meta(pattern=PATH), Example('"/var/lib/prometheus/node-exporter/huai.prom"')
    ] = ""
    """The path of a file for node_exporter's textfile collector, or empty."""
    html: Annotated[str, Meta(pattern=PATH), Example('"/var/www/html/status"')] = ""
    """The path of a web server's folder for a page, or empty."""


NO_STATUS_FILES = StatusFiles()


class ClientConfig(msgspec.Struct, frozen=True):
    """The whole file."""

    modules: dict[str, Module] = msgspec.field(default_factory=dict)
    watch: WatchSettings = WatchSettings()
    status: StatusFiles = NO_STATUS_FILES
    notify: "Notify | None" = None
    """The notifications of failures, if any."""
    attest: Attest = NO_ATTEST
    """The attestation of modules without a table; it is already merged into each module."""

    def module(self, name: str) -> Module:
        """Return a module; raises `UnknownModuleError` if it is not configured."""
        return find_module(self.modules, name)


def default_root() -> Path:
    """Return /var/lib/huai-client for root, the user's state folder for other users."""
    if os.geteuid() == 0:
        return Path("/var/lib/huai-client")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "huai-client"


def config_path(root: Path) -> Path:
    """Return the path of the configuration."""
    return root / _NAME


def load(root: Path) -> ClientConfig:
    """Read the configuration in `root`, an empty one if the file is missing.

    Raises `ConfigError` if the file cannot be read, or a value is wrong.
    """
    path = config_path(root)
    table = read_toml(path)
    check_keys(str(path), table, ClientConfig.__struct_fields__)
    modules = table.get("modules", {})
    if not isinstance(modules, dict):
        raise ConfigError(f"{path}: modules must be a table", hint="[modules.NAME] begins one")
    common = (table["attest"],) if "attest" in table else ()
    modules_by_name = {name: _module(path, name, modules[name], common) for name in modules}
    watch = convert(f"{path}: [watch]", table.get("watch", {}), WatchSettings)
    status = convert(f"{path}: [status]", table.get("status", {}), StatusFiles)
    return ClientConfig(modules_by_name, watch, status, _notify(path, table))


def _notify(path: Path, table: dict[str, Any]) -> "Notify | None":
    """Read the table `[notify]`; None without it.  Raises `ConfigError` for a wrong value."""
    if "notify" not in table:
        return None
    from huai_program.notify.settings import read_notify  # used by few

    return read_notify(f"{path}: [notify]", table["notify"])


def _module(path: Path, name: str, table: object, common: tuple[object, ...] = ()) -> Module:
    """Convert the table of module `name`, with the checks that cost very little.

    `path` is the file, named in a `ConfigError`; `common` has the table `[attest]`, if any.  With a
    list, modes and owners are by default those of this machine.
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
    if "list_command" in table or "list_url" in table:  # most lists have neither modes nor owners
        below = {"modes": "local", "owners": False, **below}
    module = convert(place, below, Module)
    try:
        check_config_name(name)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error.message}", hint=error.hint) from None
    if module.publish or module.volatile:
        _check_rules(place, module)
    return module


def _check_rules(place: str, module: Module) -> None:
    """Raise `ConfigError`, with `place`, for a malformed rule of `publish` or `volatile`."""
    from huai_schema.codec.publish_rules import own_rules, volatile_rules  # few modules have any

    key = "publish"
    try:
        own_rules(module.publish)
        key = "volatile"
        volatile_rules(module.volatile or ())
    except FormatError as error:
        raise ConfigError(f"{place}: {key}: {error.reason}", hint=example(Module, key)) from None


def check_config_name(name: str) -> str:
    """Return `name`; raises `ConfigError` if it is not a valid module name."""
    try:
        return check_module(name)
    except FormatError as error:
        raise ConfigError(error.reason, hint="for example: debian, or cpan-2.0") from None


def no_modules(root: Path) -> ConfigError:
    """Return the error for a command on all modules if none is configured."""
    path = config_path(root)
    where = f"{path} has no module" if path.exists() else f"there is no {path}"
    return ConfigError(
        f"{where}: nothing is mirrored",
        hint="run: huai-client add NAME URL DEST; or give the state of another user with --root",
    )


def make_root(root: Path) -> None:
    """Make the state root if it is missing, accessible to its owner only.

    Raises `ConfigError` if that fails.
    """
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{root}: {error.strerror}", hint="choose another state root with --root"
        ) from error


def add_module(root: Path, name: str, module: Module) -> None:
    """Write a new module into the configuration, only the keys that are not the defaults.

    Raises `ConfigError` if the name is invalid or exists, or the file cannot be read or written.
    """
    check_config_name(name)
    load(root)
    defaults, values = to_toml(Module(url="", dest="")), to_toml(module)
    needed = ("url", "dest")
    changed = {
        key: value for key, value in values.items() if value != defaults[key] or key in needed
    }
    path = config_path(root)
    insert_module(path, name, changed, hint=f"change it in {path}, or remove it", mode=0o600)


def remove_module(root: Path, name: str) -> None:
    """Remove a module from the configuration, and nothing else.

    Raises `UnknownModuleError` without it, `ConfigError` if the file cannot be read or written.
    """
    load(root).module(name)
    edit_modules(config_path(root), lambda modules: modules.pop(name, None), mode=0o600)
