"""The server's configuration: one TOML file below one state root, as frozen, typed values."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from huai_schema.codec.descriptor import Descriptor, check_module
from huai_schema.codec.publish_rules import own_rules, volatile_rules
from huai_schema.codec.web_folder import HOST, is_web_folder
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.limits import BLOCK_INDEX_MIN
from huai_schema.program.configuration import (
    ConfigError,
    check_keys,
    find_module,
    read_toml,
    rewrite,
)
from huai_schema.program.spans import SPAN, seconds
from huai_server.mirrors.tables import NAME as DOWNSTREAM_NAME
from huai_server.mirrors.tables import AllowedDownstream, MirrorSettings
from huai_server.static.place import BUCKET
from huai_server.store.retention import Retention

if TYPE_CHECKING:
    from huai_schema.program.notify.settings import Notify

_NAME = "server.toml"
_SEE = "docs/SERVER-CONFIGURATION.md, or `man huai-server.toml`, lists the keys and their values"
_MODE = 0o644
"""Of the file: it has no secrets, and `serve` may run as another user.  The root limits access."""
_Table = TypeVar("_Table", bound=msgspec.Struct)
_DAEMON = re.compile(
    rf"(?:rsync://(?:[\w.-]+@)?{HOST}(?::[0-9]{{1,5}})?/|(?:[\w.-]+@)?{HOST}::)"
    r"(?!\.\.?(?:/|$))[^/:*?\[\\-][^*?\[\\]*",
    re.ASCII,
)
"""A module of an rsync daemon, as downstreams accept it from metadata."""
_PLAIN = re.compile("[!-~]+")
"""What a header of HTTP may hold."""
_Line = Annotated[str, Meta(pattern=r"^[^\x00\r\n]*$")]
"""A value for one line of another program's configuration."""


class Tls(msgspec.Struct, frozen=True):
    """The files of TLS, as PEM; who runs `serve` has to be able to read them."""

    certificate: Annotated[str, Meta(pattern=r"^/[^\x00\n]*$")]
    """With the chain that leads to its authority."""
    key: Annotated[str, Meta(pattern=r"^/[^\x00\n]*$")]
    client_ca: Annotated[str, Meta(pattern=r"^(?:/[^\x00\n]*)?$")] = ""
    """Who signs certificates of clients; empty: they are asked for none."""


class Listen(msgspec.Struct, frozen=True):
    """Where `serve` listens, and its limits for clients; the keys are those of `ServeSettings`."""

    host: Annotated[str, Meta(pattern=r"^[^\x00]*$")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8440
    max_transfers: Annotated[int, Meta(ge=1)] = 8
    """Fetches that run at a time; more wait in a queue."""
    request_timeout: Annotated[float, Meta(gt=0, le=86400)] = 600.0
    """Seconds."""
    shutdown_grace: Annotated[float, Meta(ge=0, le=86400)] = 60.0
    """Seconds that transfers get to finish when the server is asked to stop."""
    max_connections: Annotated[int, Meta(ge=1)] = 2000
    max_connections_per_address: Annotated[int, Meta(ge=1)] = 200
    max_subscribers: Annotated[int, Meta(ge=0)] = 2000
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    """Addresses and networks of proxies whose X-Forwarded-For is trusted."""
    spool_folder: Annotated[str, Meta(pattern=r"^/[^\x00\n]*$")] = "/var/tmp"  # noqa: S108 - files without a name
    spool_bytes: Annotated[int, Meta(ge=0)] = 1 << 30
    access_log: bool = False
    tls: Tls | None = None
    """None: plain HTTP."""


class Fallback(msgspec.Struct, frozen=True):
    """The rsync daemon for unmodified clients; the keys are rsyncd.conf's where it has one."""

    folder: Annotated[str, Meta(pattern=r"^/[^\x00\n]*$")] = "/run/huai/fallback"
    """Holds the attr trees; in memory (tmpfs), or wherever sparse files can be made."""
    rsync: Annotated[str, Meta(pattern=r"^[^\x00\n]+$")] = "rsync"
    """The program; found on PATH unless it is a path."""
    address: Annotated[str, Meta(pattern=r"^[^\x00\n]*$")] = ""
    """Empty: all addresses of the machine."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 873
    uid: _Line = "nobody"
    gid: _Line = ""
    """Empty: the group of `uid`."""
    use_chroot: bool = True
    """Only root can; others must turn it off."""
    max_connections: Annotated[int, Meta(ge=0)] = 50
    """At a time, for each module; 0: no limit."""
    timeout: Annotated[int, Meta(ge=0)] = 600
    """Seconds without any data after which a client is disconnected; 0: never."""
    motd_file: _Line = ""
    secrets_file: _Line = ""
    hosts_allow: tuple[_Line, ...] = ()
    hosts_deny: tuple[_Line, ...] = ()
    refuse_options: tuple[_Line, ...] = ("checksum",)
    dont_compress: tuple[_Line, ...] = tuple(
        f"*.{suffix}"
        for suffix in (
            *("gz", "tgz", "zip", "z", "xz", "zst", "rpm", "deb", "bz2", "tbz", "lzma"),
            *("7z", "rar", "iso", "ova", "dmg", "pkg"),
        )
    )
    log_file: Annotated[str, Meta(pattern=r"^/[^\x00\n]*$")] = "/dev/stderr"
    extra: str = ""
    """Lines to add to the global part of rsyncd.conf as they are."""
    shutdown_grace: Annotated[float, Meta(ge=0, le=86400)] = 60.0
    """Seconds that transfers get to finish when the daemon is asked to stop."""
    check_interval: Annotated[float, Meta(ge=0)] = 3600.0
    """Seconds between checks that the attr trees are whole; 0: never."""


ATTR_KINDS = frozenset(("sparse", "erofs"))
"""Kinds of `ModuleFallback` that list from an attr tree."""


class ModuleFallback(msgspec.Struct, frozen=True):
    """How unmodified rsync clients get one module; empty values are those of `Fallback`."""

    kind: Literal["sparse", "erofs", "real", "off"] = "sparse"
    """The tree that is listed: sparse files, an EROFS image, the real one; `off`: no module."""
    comment: _Line = ""
    list: bool = True
    """Whether the daemon's list of modules names it."""
    max_connections: Annotated[int, Meta(ge=0)] | None = None
    auth_users: tuple[_Line, ...] = ()
    secrets_file: _Line = ""
    hosts_allow: tuple[_Line, ...] = ()
    hosts_deny: tuple[_Line, ...] = ()
    extra: str = ""
    """Lines to add to the module's part of rsyncd.conf as they are."""


class ModuleExport(msgspec.Struct, frozen=True):
    """The files for other programs that are written of the newest commit (EXPORT.md)."""

    files: tuple[
        Literal["arch", "b3sums", "fedora", "ls-lR", "timestamp", "trace", "tunasync"], ...
    ] = ()
    """The dialects; none: there is no export."""
    folder: Annotated[str, Meta(pattern=r"^[^\x00]*$")] = ""
    """Where to: below the tree if it is relative, empty: its top."""
    list_name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._+-]*$")] = ""
    """What stands behind the `-` of Fedora's lists; empty: the module's name."""
    host: Annotated[str, Meta(pattern=r"^(?:[A-Za-z0-9][A-Za-z0-9._-]*)?$")] = ""
    """The mirror's name, which its trace file has; empty: this machine's."""
    upstream: _Line = ""
    """Where the tree comes from."""
    heartbeat: Annotated[int, Meta(ge=0, le=366 * 86400)] = 0
    """Seconds after which stamps are renewed though nothing changed; 0: they are not."""
    sums: tuple[Annotated[str, Meta(pattern=r"^[^\x00]*$")], ...] = ()
    """Directories that get a `B3SUMS`."""


class StaticFiles(msgspec.Struct, frozen=True):
    """Where the files go that let any web server serve metadata (STATIC.md)."""

    to: tuple[Annotated[str, Meta(pattern=rf"^(?:/[^\x00\n]*|{BUCKET})$")], ...] | None = None
    """Folders and buckets; `()`: there are no such files; None: as `[static]` says, or none."""
    endpoint: Annotated[str, Meta(pattern=r"^(?:https?://[^\s/@?#]+(?:/[^\s@?#]*)?)?$")] = ""
    """The URL of the service that has the buckets; empty: as `[static]` or the environment says."""


class WebHook(msgspec.Struct, frozen=True):
    """Who is told of the commits of a module (PUSH.md)."""

    url: Annotated[str, Meta(pattern=r"^https?://[^\s/@?#]+(?:[/?][^\s#]*)?$", max_length=2048)]
    secret_file: Annotated[str, Meta(pattern=r"^/[^\x00\n]*$")]
    """Signs what is sent; who runs `serve` has to be able to read it."""
    internal: bool = False
    """Whether it may have an address of this network."""


class RelayedError(HuaiError):
    """A module whose commits are made elsewhere."""

    exit_code = ExitCode.CONFIG


class Module(msgspec.Struct, frozen=True):
    """One mirrored tree."""

    path: str
    content_urls: tuple[str, ...] = ()
    digest: Literal["now", "later", "off"] = "now"
    """Whether a commit reads new and changed files, or `huai-server digest` does."""
    exclude: tuple[str, ...] = ()
    one_file_system: bool = True
    owners: bool = True
    """Whether owner and group are part of the metadata."""
    publish: tuple[str, ...] = ()
    """Publish rules for downstreams (FORMAT.md, "Publish rules")."""
    volatile: tuple[str, ...] = ()
    """Patterns of files that change without a commit (FORMAT.md, "Publish rules")."""
    check_readable: bool = True
    """Whether a commit warns of files that other users cannot read."""
    block_index: Annotated[int, Meta(ge=0)] = 16 << 20
    """Bytes from which on a file gets a block index (FORMAT.md); 0: none does."""
    serve_content: bool = False
    """Whether `serve` hands out the files of the newest commit."""
    audit: Annotated[str, Meta(pattern=rf"^$|{SPAN}")] = ""
    """How old a whole scan may be for a commit from lists; empty: as old as it is."""
    scrub: Annotated[str, Meta(pattern=rf"^$|{SPAN}")] = ""
    """Within how long each file is read again, whether it still has its digest; empty: never."""
    mirrors: tuple[str, ...] = ()
    """Content URLs of others who have the tree."""
    keep: Annotated[str, Meta(pattern=f"^forever$|{SPAN}")] = "30d"
    """How long commits stay; `forever`: nothing is ever dropped."""
    keep_commits: Annotated[int, Meta(ge=1, le=1_000_000)] = 64
    """So many of the newest stay, however old they are."""
    webhooks: tuple[WebHook, ...] = ()
    """Who is told of each commit by `serve`."""
    access: Literal["public", "private"] = "public"
    """Whether everybody sees it, or those alone who have a token for it (ACCESS.md)."""
    relay: Annotated[str, Meta(pattern=r"^(?:/[^\x00\n]*)?$")] = ""
    """The state root of a huai-client whose commits are handed on; empty: the tree is committed."""
    relay_name: Annotated[str, Meta(pattern=r"^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,127})?$")] = ""
    """What the module is called there; empty: the same."""
    certificates: tuple[Annotated[str, Meta(pattern=r"^(?:sha256:[0-9a-f]{64}|CN=.+)$")], ...] = ()
    """Client certificates that open it as a token does: by their SHA-256, or their subject."""
    fallback: ModuleFallback = ModuleFallback()
    export: ModuleExport = ModuleExport()
    static: StaticFiles = StaticFiles()

    @property
    def is_private(self) -> bool:
        """Whether `serve` hides it from whoever has no right to it."""
        return self.access == "private"

    @property
    def in_fallback(self) -> bool:
        """Whether unmodified rsync clients get it: a private one, where limits say which."""
        limited = self.fallback.auth_users or self.fallback.hosts_allow
        return self.fallback.kind != "off" and (not self.is_private or bool(limited))

    @property
    def relay_urls(self) -> tuple[str, ...]:
        """Content URLs that commits made elsewhere do not name; empty if it is not relayed."""
        return self.content_urls if self.relay else ()

    @property
    def indexed(self) -> int:
        """Bytes from which on files have a block index; 0: none has, since none has a digest."""
        return self.block_index if self.digest != "off" else 0

    @property
    def scrub_span(self) -> int | None:
        """Seconds within which each file is read again; None: nobody asked for that."""
        return (seconds(self.scrub) if self.scrub else 0) or None

    @property
    def retention(self) -> Retention:
        """Which old commits stay."""
        span = None if self.keep == "forever" else seconds(self.keep)
        return Retention(span, self.keep_commits)

    @property
    def rules(self) -> tuple[str, ...]:
        """The publish rules that downstreams get."""
        return self.publish + volatile_rules(self.volatile)


class Cosigner(msgspec.Struct, frozen=True):
    """One more who signs commits: as `Signing` says."""

    key: Annotated[str, Meta(pattern=r"^/[^\x00\n]*$")]
    command: tuple[Annotated[str, Meta(pattern=r"^[^\x00]+$")], ...] = ()


class Signing(msgspec.Struct, frozen=True):
    """Who signs commits."""

    key: Annotated[str, Meta(pattern=r"^/[^\x00\n]*$")]
    """A file with a private key; or with a public one, and the agent or `command` signs."""
    command: tuple[Annotated[str, Meta(pattern=r"^[^\x00]+$")], ...] = ()
    """Signs what comes on its standard input; `{namespace}` and `{key}` are replaced."""
    validity: Annotated[str, Meta(pattern=r"^[1-9][0-9]{0,5}[mhdw]$")] = "7d"
    """For how long a signature holds."""
    timeout: Annotated[float, Meta(gt=0, le=3600)] = 20.0
    """Seconds within which the agent or the command has to sign."""
    cosigners: tuple[Cosigner, ...] = ()
    """Whose signatures count as well."""
    threshold: Annotated[int, Meta(ge=1, le=16)] = 1
    """How many of `key` and these have to sign."""

    @property
    def seconds(self) -> int:
        """The validity."""
        return seconds(self.validity)


class ServerConfig(msgspec.Struct, frozen=True):
    """The whole file."""

    listen: Listen = Listen()
    modules: dict[str, Module] = msgspec.field(default_factory=dict)
    fallback: Fallback = Fallback()
    signing: Signing | None = None
    """None: commits are not signed."""
    static: StaticFiles = StaticFiles()
    """Of modules that say nothing else."""
    notify: "Notify | None" = None
    """None: nobody is told of failures."""
    mirrors: MirrorSettings = MirrorSettings()
    allowed_downstreams: dict[str, AllowedDownstream] = msgspec.field(default_factory=dict)
    """By name, those whose attestations are taken."""

    @property
    def fallback_modules(self) -> dict[str, Module]:
        """The modules that unmodified rsync clients get."""
        return {name: each for name, each in self.modules.items() if each.in_fallback}

    @property
    def attr_modules(self) -> dict[str, Module]:
        """The modules that list from an attr tree."""
        return {
            name: each
            for name, each in self.fallback_modules.items()
            if each.fallback.kind in ATTR_KINDS
        }

    def module(self, name: str) -> Module:
        """The module `name`; raises `UnknownModuleError`."""
        return find_module(self.modules, name)

    def committed(self, name: str) -> Module:
        """The same, if its commits are made here; raises `RelayedError` as well."""
        module = self.module(name)
        if module.relay:
            raise RelayedError(
                f"{name}: its commits are made upstream, and handed on from {module.relay}",
                hint=f"run huai-client sync {module.relay_name or name}; `serve` hands on what it "
                "applied",
            )
        return module

    def relayed(self, name: str) -> Module:
        """The module `name`, if it hands on the commits of another; else `RelayedError`."""
        module = self.module(name)
        if not module.relay:
            raise RelayedError(
                f"{name}: its commits are made here",
                hint=f"run huai-server commit {name}; or name the state root of huai-client in "
                "server.toml: relay",
            )
        return module

    def static_places(self, name: str) -> tuple[str, ...]:
        """Where the static files of the module `name` go."""
        own = self.module(name).static.to
        return (self.static.to or ()) if own is None else own

    def static_endpoint(self, name: str) -> str:
        """The URL of the service that has the buckets of the module `name`; empty: not said."""
        return self.module(name).static.endpoint or self.static.endpoint


def default_root() -> Path:
    """/var/lib/huai for root and wherever it exists, else a folder of the user's own state."""
    common = Path("/var/lib/huai")
    if os.geteuid() == 0 or common.exists():
        return common
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "huai"


def config_path(root: Path) -> Path:
    """The configuration file below `root`."""
    return root / _NAME


def load(root: Path) -> ServerConfig:
    """Read the configuration below `root`; a missing file means: no modules yet."""
    path = config_path(root)
    table = read_toml(path)
    check_keys(str(path), table, ServerConfig.__struct_fields__)
    _convert_tls(path, table)
    listen = _convert(f"{path}: [listen]", table.get("listen", {}), Listen)
    if "proxies" in table.get("listen", {}):
        _check_proxies(f"{path}: [listen]", listen.proxies)
    signing = None
    if "signing" in table:
        signing = _convert(f"{path}: [signing]", table["signing"], Signing)
    fallback = _convert(f"{path}: [fallback]", table.get("fallback", {}), Fallback)
    static = _convert(f"{path}: [static]", table.get("static", {}), StaticFiles)
    modules = table.get("modules", {})
    if not isinstance(modules, dict):
        raise ConfigError(f"{path}: modules: tables were expected", hint=_SEE)
    named = {name: _module(path, name, modules[name]) for name in modules}
    notify = None
    if "notify" in table:
        from huai_schema.program.notify.settings import read_notify  # most have no use for it

        place = f"{path}: [notify]"
        notify = read_notify(place, table["notify"], msgspec.convert, msgspec.ValidationError)
    mirrors = _convert(f"{path}: [mirrors]", table.get("mirrors", {}), MirrorSettings)
    downstreams = _downstreams(path, table.get("allowed_downstreams", {}))
    return ServerConfig(listen, named, fallback, signing, static, notify, mirrors, downstreams)


def _downstreams(path: Path, tables: object) -> dict[str, AllowedDownstream]:
    """Those of `[allowed_downstreams.NAME]`; each key belongs to one of them."""
    if not isinstance(tables, dict):
        raise ConfigError(f"{path}: allowed_downstreams: tables were expected", hint=_SEE)
    found: dict[str, AllowedDownstream] = {}
    for name, table in tables.items():
        place = f"{path}: [allowed_downstreams.{name}]"
        if DOWNSTREAM_NAME.fullmatch(name) is None:
            raise ConfigError(
                f"{place}: this cannot be a name (letters, digits, '.', '_', '-')",
                hint="for example the mirror's host name",
            )
        one = _convert(place, table, AllowedDownstream)
        key = _public_key(place, one.key)
        if any(each.key == key for each in found.values()):
            raise ConfigError(f"{place}: another one has this key", hint="give each its own")
        found[name] = msgspec.structs.replace(one, key=key)
    return found


def _public_key(place: str, line: str) -> str:
    from huai_native._native import parse_public_key  # few have such a table

    try:
        return parse_public_key(line)
    except FormatError as error:
        raise ConfigError(
            f"{place}: key: {error.reason}", hint='for example: key = "ssh-ed25519 AAAA..."'
        ) from None


def add_module(root: Path, name: str, module: Module) -> None:
    """Add a module to the configuration; raises `ConfigError` if the name is taken."""
    import tomlkit  # loads slowly, and nothing else writes configuration

    path = config_path(root)
    defaults = msgspec.to_builtins(Module(path=""))
    values = msgspec.to_builtins(module)
    changed = {key: value for key, value in values.items() if value != defaults[key]}
    _module(path, name, {**changed, "path": module.path})
    load(root)

    def put(text: str) -> str:
        document = tomlkit.parse(text)
        modules = document.setdefault("modules", tomlkit.table(is_super_table=True))
        if name in modules:
            raise ConfigError(
                f"module {name!r} exists already",
                hint=f"change it in {path}, or choose another name",
            )
        modules[name] = changed
        return tomlkit.dumps(document)

    rewrite(path, put, mode=_MODE)


def remove_module(root: Path, name: str) -> None:
    """Remove a module from the configuration, if it is there."""
    import tomlkit  # as above

    load(root).module(name)

    def drop(text: str) -> str:
        document = tomlkit.parse(text)
        modules: Any = document["modules"]
        if name in modules:
            del modules[name]
        return tomlkit.dumps(document)

    rewrite(config_path(root), drop, mode=_MODE)


def _check_proxies(place: str, proxies: tuple[str, ...]) -> None:
    from huai_server.http.asgi.connections import address_of  # loads slowly

    try:
        address_of(proxies)
    except ValueError as error:
        raise ConfigError(
            f"{place}: proxies: {error}", hint="write addresses and networks, such as 10.0.0.0/8"
        ) from None


def _module(path: Path, name: str, table: object) -> Module:
    """The module of one table, checked without looking at its tree."""
    place = f"{path}: [modules.{name}]"
    if isinstance(table, dict):
        _convert(f"{place[:-1]}.fallback]", table.get("fallback", {}), ModuleFallback)
        _convert(f"{place[:-1]}.export]", table.get("export", {}), ModuleExport)
        hooks = table.get("webhooks", ())
        for hook in hooks if isinstance(hooks, list) else ():
            _convert(f"{place}: webhooks", hook, WebHook)
        _convert(f"{place[:-1]}.static]", table.get("static", {}), StaticFiles)
    module = _convert(place, table, Module)
    _check_urls(f"{place}: content_urls", name, module.content_urls)
    _check_urls(f"{place}: mirrors", name, module.mirrors)
    try:
        check_module(name)
        # As clients will read it.
        told = Descriptor(name, module.content_urls, module.rules, mirrors=module.mirrors)
        Descriptor.decode(told.encode())
        own_rules(module.rules)
    except FormatError as error:
        raise ConfigError(f"{place}: {error.reason}", hint=_SEE) from None
    except UnicodeError as error:
        raise ConfigError(f"{place}: content_urls: {error}", hint="URLs are UTF-8") from None
    if module.relay and module.export.files:
        raise ConfigError(
            f"{place}: a relayed tree is its upstream's, and nothing is exported to it",
            hint="leave out relay, or export",
        )
    if not all(map(_PLAIN.fullmatch, module.relay_urls)):
        raise ConfigError(
            f"{place}: content_urls: those of a relayed module are of ASCII, without blanks",
            hint="percent-encode other characters",
        )
    if 0 < module.block_index < BLOCK_INDEX_MIN:
        raise ConfigError(
            f"{place}: block_index: files of {module.block_index} bytes are too small for an index",
            hint=f"give at least {BLOCK_INDEX_MIN}, or 0 for none",
        )
    if not module.path.startswith("/") or "\0" in module.path:
        raise ConfigError(
            f"{place}: path: {module.path!r} is not an absolute path", hint="begin it with a slash"
        )
    return module


def _convert_tls(path: Path, table: dict[str, Any]) -> None:
    """Name what is wrong in the table of TLS, if there is one."""
    listen = table.get("listen")
    if isinstance(listen, dict) and "tls" in listen:
        _convert(f"{path}: [listen]: tls", listen["tls"], Tls)


def _check_urls(place: str, name: str, urls: tuple[str, ...]) -> None:
    for url in urls:
        daemon = _DAEMON.fullmatch(url) and ".." not in url.split("/")
        if not daemon and not is_web_folder(url):
            raise ConfigError(
                f"{place}: {url!r} is not what downstreams fetch content from",
                hint=f"name an rsync daemon and its module, rsync://HOST/{name}, or the folder of "
                f"a web server: https://HOST/{name}",
            )


def _convert(place: str, table: object, kind: type[_Table]) -> _Table:
    check_keys(place, table, kind.__struct_fields__)
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{place}: {_in_words(str(error), table)}", hint=_SEE) from None


_AT_KEY = re.compile(r" - at `\$\.(\w+)[^`]*`$")
_WORDS = (
    (r"Object missing required field `(\w+)`", r"the key '\1' is missing"),
    (r"Expected `(?:array|tuple)`, got `\w+`", 'a list was expected: ["…"]'),
    (r"Expected `int \| null`, got `\w+`", "a whole number was expected"),
    (r"Expected `int`, got `\w+`", "a whole number was expected"),
    (r"Expected `float`, got `\w+`", "a number was expected"),
    (r"Expected `str`, got `\w+`", 'a text was expected: "…"'),
    (r"Expected `bool`, got `\w+`", "true or false was expected"),
    (r"Expected `(?:int|float)(?: \| null)?` (>=?|<=?) (\S+)", r"the number has to be \1 \2"),
    (r"Invalid enum value '(.*)'", r"'\1' is not one of the values of this key"),
    (r"Expected `str` matching regex '(.*)'", "the text does not have the form that it needs"),
)


def _in_words(said: str, table: object) -> str:
    """Msgspec's message in plain words: the key, its value, and what is wrong with it."""
    found = _AT_KEY.search(said)
    reason = said[: found.start()] if found else said
    for pattern, words in _WORDS:
        reason = re.sub(f"^{pattern}$", words, reason)
    if found is None:
        return reason
    key = found[1]
    value = table.get(key) if isinstance(table, dict) else None
    shown = "" if isinstance(value, dict) else f" = {value!r}"
    return f"{key}{shown}: {reason}"
