"""The tables of server.toml, as frozen, typed values; `config` reads them."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from huai_program.durations import Duration, seconds
from huai_program.sizes import Size
from huai_schema.codec.publish_rules import volatile_rules
from huai_server.config.place import BUCKET
from huai_server.config.retention import Retention

_Line = Annotated[str, Meta(pattern=r"^[^\x00\r\n]*$")]
"""A value for one line of another program's configuration."""


class MaybeDuration(Duration):
    """A duration, or nothing."""

    __slots__ = ()
    words = ("",)


class Keep(Duration):
    """A duration, or no end."""

    __slots__ = ()
    words = ("forever",)


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
    access_log: bool = False
    tls: Tls | None = None
    """None: plain HTTP."""


class Fallback(msgspec.Struct, frozen=True):
    """The rsync daemon for unmodified clients; the keys are rsyncd.conf's where it has one."""

    folder: Annotated[str, Meta(pattern=r"^/[^\x00\n]*$")] = "/run/huai/fallback"
    """Holds the attr trees, in memory (tmpfs) or wherever sparse files can be made.

    `config.load` replaces the default for any root but /var/lib/huai: by `ROOT/fallback`.
    """
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
    confine: Literal["try", "require"] = "try"
    """`require`: nothing is served where connections cannot be confined."""
    max_connections: Annotated[int, Meta(ge=0)] = 50
    """At a time, for each module; 0: no limit."""
    timeout: Annotated[int, Meta(ge=0)] = 600
    """Seconds without any data after which a client is disconnected; 0: never."""
    motd_file: _Line = ""
    secrets_file: _Line = ""
    hosts_allow: tuple[_Line, ...] = ()
    hosts_deny: tuple[_Line, ...] = ()
    refuse_options: tuple[_Line, ...] = ("checksum", "compress-level", "compress-threads")
    """Reading all files, or the strongest compression, is too much for a request without login."""
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
    """Folders and buckets; `()`: there are no such files; None: as `[static]` says, or none.

    A private module takes none from `[static]`.
    """
    endpoint: Annotated[str, Meta(pattern=r"^(?:https?://[^\s/@?#]+(?:/[^\s@?#]*)?)?$")] = ""
    """The URL of the service that has the buckets; empty: as `[static]` or the environment says."""


class WebHook(msgspec.Struct, frozen=True):
    """Who is told of the commits of a module (PUSH.md)."""

    url: Annotated[str, Meta(pattern=r"^https?://[^\s/@?#]+(?:[/?][^\s#]*)?$", max_length=2048)]
    secret_file: Annotated[str, Meta(pattern=r"^/[^\x00\n]*$")]
    """Signs what is sent; who runs `serve` has to be able to read it."""
    internal: bool = False
    """Whether it may have an address of this network."""


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
    block_index: Size = Size(16 << 20)
    """Bytes from which on a file gets a block index (FORMAT.md); 0: none does."""
    serve_content: bool = False
    """Whether `serve` hands out the files of the newest commit."""
    audit: MaybeDuration = MaybeDuration("")
    """How old a whole scan may be for a commit from lists; empty: as old as it is."""
    scrub: MaybeDuration = MaybeDuration("")
    """Within how long each file is read again, whether it still has its digest; empty: never."""
    mirrors: tuple[str, ...] = ()
    """Content URLs of others who have the tree."""
    keep: Keep = Keep("30d")
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
    pending: bool = False
    """A commit that lacks signatures of cosigners waits for them."""

    @property
    def seconds(self) -> int:
        """The validity."""
        return seconds(self.validity)
