"""The tables of server.toml as frozen, typed values; `load` reads them."""

import os
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from huai_program.durations import Duration, TimeLimit, seconds
from huai_program.engine import ENGINE
from huai_program.sizes import Size
from huai_program.tables import Example
from huai_schema.codec.publish_rules import volatile_rules
from huai_server.config.place import BUCKET
from huai_server.config.retention import Retention

_Line = Annotated[str, Meta(pattern=r"^[^\x00\r\n]*$")]
"""A value for one line of another program's configuration."""


class MaybeDuration(Duration):
    """A duration, or the empty string."""

    __slots__ = ()
    words = ("",)


class Keep(Duration):
    """A duration, or `forever`."""

    __slots__ = ()
    words = ("forever",)


class Tls(msgspec.Struct, frozen=True):
    """The PEM files for TLS, which the user of `serve` must be able to read."""

    certificate: Annotated[str, Meta(pattern=r"^/[^\x00\n]*$")]
    """The certificate with the chain to its authority."""
    key: Annotated[str, Meta(pattern=r"^/[^\x00\n]*$")]
    client_ca: Annotated[str, Meta(pattern=r"^(?:/[^\x00\n]*)?$")] = ""
    """The authority of client certificates; empty if none is requested."""


class Listen(msgspec.Struct, frozen=True):
    """The address of `serve` and its limits."""

    host: Annotated[str, Meta(pattern=r"^[^\x00]*$")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8440
    """0 picks a free port; `on_start` gets it."""
    max_transfers: Annotated[int, Meta(ge=1)] = 8
    """git processes that build packs at once; ref listings have as many more."""
    request_timeout: TimeLimit = TimeLimit("10m")
    """The time for a whole request to arrive, and after which a silent git is killed."""
    shutdown_grace: Duration = Duration("1m")
    """The time that transfers have to finish after a stop signal."""
    max_connections: Annotated[int, Meta(ge=1)] = 2000
    max_connections_per_address: Annotated[int, Meta(ge=1)] = 200
    max_subscribers: Annotated[int, Meta(ge=0)] = 2000
    """Connections that stay open for events; they do not count as other connections."""
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    """Addresses and networks of proxies whose X-Forwarded-For is trusted."""
    access_log: bool = False
    tls: Tls | None = None
    """None for plain HTTP."""

    @property
    def timeout(self) -> int:
        """`request_timeout` in seconds."""
        return seconds(self.request_timeout)

    @property
    def grace(self) -> int:
        """`shutdown_grace` in seconds."""
        return seconds(self.shutdown_grace)


class Fallback(msgspec.Struct, frozen=True):
    """The rsync daemon for unmodified clients; the keys are rsyncd.conf's where it has one."""

    folder: Annotated[str, Meta(pattern=r"^/[^\x00\n]*$")] = "/run/huai/fallback"
    """The folder of the attr trees, on a tmpfs or any file system with sparse files.

    For any root except /var/lib/huai `config.load` replaces the default by `ROOT/fallback`.
    """
    rsync: Annotated[str, Meta(pattern=r"^[^\x00\n]+$")] = "rsync"
    """The program, as a path or as a name that is searched on PATH."""
    address: Annotated[str, Meta(pattern=r"^[^\x00\n]*$")] = ""
    """The address to listen on; empty for all addresses of the machine."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 873
    uid: _Line = "nobody"  # prose: the name of a user
    gid: _Line = ""
    """Empty for the group of `uid`."""
    use_chroot: bool = True
    """Must be off unless the daemon runs as root."""
    confine: Literal["try", "require"] = "try"
    """`require` refuses to serve where connections cannot be confined."""
    max_connections: Annotated[int, Meta(ge=0)] = 50
    """Concurrent connections to each module; 0 for no limit."""
    timeout: Annotated[int, Meta(ge=0)] = 600
    """Seconds without data after which a client is disconnected; 0 for never."""
    motd_file: _Line = ""
    secrets_file: _Line = ""
    hosts_allow: tuple[_Line, ...] = ()
    hosts_deny: tuple[_Line, ...] = ()
    refuse_options: tuple[_Line, ...] = ("checksum", "compress-level", "compress-threads")
    """Reading all files or compressing hard costs too much for anonymous clients."""
    dont_compress: tuple[_Line, ...] = tuple(
        f"*.{suffix}"
        for suffix in (
            *("gz", "tgz", "zip", "z", "xz", "zst", "rpm", "deb", "bz2", "tbz", "lzma"),
            *("7z", "rar", "iso", "ova", "dmg", "pkg"),
        )
    )
    log_file: Annotated[str, Meta(pattern=r"^/[^\x00\n]*$")] = "/dev/stderr"
    extra: str = ""
    """Lines to add unchanged to the global part of rsyncd.conf."""
    shutdown_grace: Duration = Duration("1m")
    """The time that transfers have to finish after a stop signal."""
    check_interval: Duration = Duration("1h")
    """The time between comparisons of the attr trees with their commits; 0 for never."""


ATTR_KINDS = frozenset(("sparse", "erofs"))
"""The kinds of `ModuleFallback` that list from an attr tree."""


class ModuleFallback(msgspec.Struct, frozen=True):
    """The fallback settings of one module; empty values default to those of `Fallback`."""

    kind: Literal["sparse", "erofs", "real", "off"] = "sparse"
    """The tree to list: sparse files, an EROFS image or the real tree; `off` for no module."""
    comment: _Line = ""
    list: bool = True
    """True if the daemon's list of modules names it."""
    max_connections: Annotated[int, Meta(ge=0)] | None = None
    auth_users: tuple[_Line, ...] = ()
    secrets_file: _Line = ""
    hosts_allow: tuple[_Line, ...] = ()
    hosts_deny: tuple[_Line, ...] = ()
    extra: str = ""
    """Lines to add unchanged to the module's part of rsyncd.conf."""


class ModuleExport(msgspec.Struct, frozen=True):
    """The files that describe the newest commit to other programs (HOOKS.md)."""

    files: tuple[
        Literal["arch", "b3sums", "fedora", "ls-lR", "timestamp", "trace", "tunasync"], ...
    ] = ()
    """The dialects to write; empty for no export."""
    folder: Annotated[str, Meta(pattern=r"^[^\x00]*$")] = ""
    """The folder to write to; a relative path is below the tree, an empty one is its top."""
    list_name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._+-]*$")] = ""
    """The suffix of the names of Fedora's lists; empty for the module's name."""
    host: Annotated[str, Meta(pattern=r"^(?:[A-Za-z0-9][A-Za-z0-9._-]*)?$")] = ""
    """The mirror's name in its trace file; empty for the name of this machine."""
    upstream: _Line = ""
    heartbeat: Annotated[int, Meta(ge=0, le=366 * 86400)] = 0
    """Seconds after which stamps are renewed although nothing changed; 0 for never."""
    sums: tuple[Annotated[str, Meta(pattern=r"^[^\x00]*$")], ...] = ()
    """The directories that get a `B3SUMS`."""


class ModuleEngine(msgspec.Struct, frozen=True):
    """The processes that scan the shards of a module."""

    url: Annotated[str, Meta(pattern=rf"^(?:{ENGINE})?$")] = ""
    """`local://N` for N processes of this machine, `dask://HOST:PORT`, `mpi://`; empty for none."""
    shard_entries: Annotated[int, Meta(ge=1)] = 2_000_000
    """The entries from which a directory is cut into its subdirectories."""
    share: Annotated[str, Meta(pattern=r"^(?:/[^\x00\n]*)?$")] = ""
    """A folder that all nodes see; empty for one below the state root."""
    deadline: TimeLimit = TimeLimit("2m")
    """The time of silence after which another process scans a shard."""
    where: dict[str, Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]] = msgspec.field(
        default_factory=dict
    )
    """The labels of directories, by path: of the workers that scan them."""

    @property
    def labels(self) -> dict[bytes, str]:
        """The labels by path; no directory is in another one."""
        return {os.fsencode(path.strip("/")): label for path, label in self.where.items()}


class StaticFiles(msgspec.Struct, frozen=True):
    """The places of the files with which any web server serves metadata (SERVE.md)."""

    to: tuple[Annotated[str, Meta(pattern=rf"^(?:/[^\x00\n]*|{BUCKET})$")], ...] | None = None
    """Folders and buckets; None for those of `[static]`, which a private module ignores."""
    endpoint: Annotated[str, Meta(pattern=r"^(?:https?://[^\s/@?#]+(?:/[^\s@?#]*)?)?$")] = ""
    """The URL of the service with the buckets; empty for that of `[static]` or the environment."""


class WebHook(msgspec.Struct, frozen=True):
    """A URL that receives a request for each commit of a module (PUSH.md)."""

    url: Annotated[str, Meta(pattern=r"^https?://[^\s/@?#]+(?:[/?][^\s#]*)?$", max_length=2048)]
    secret_file: Annotated[str, Meta(pattern=r"^/[^\x00\n]*$")]
    """The key that signs requests; the user of `serve` must be able to read it."""
    internal: bool = False
    """True if the host may have an address of this network."""


class Module(msgspec.Struct, frozen=True):
    """The settings of one mirrored tree."""

    path: str
    content_urls: tuple[str, ...] = ()
    digest: Literal["now", "later", "off"] = "now"
    """`now` if commits read new and changed files, `later` if `huai-server digest` does."""
    exclude: tuple[str, ...] = ()
    one_file_system: bool = True
    owners: bool = True
    publish: tuple[str, ...] = ()
    """Publish rules for downstreams (FORMAT.md, "Publish rules")."""
    volatile: tuple[str, ...] = ()
    """Patterns of files that change without a commit (FORMAT.md, "Publish rules")."""
    check_readable: bool = True
    """True if a commit warns about files that other users cannot read."""
    block_index: Size = Size(16 << 20)
    """The size in bytes from which files get a block index (FORMAT.md); 0 for none."""
    serve_content: Annotated[bool | Literal["large"], Example("true")] = "large"
    """`large` for only those files that have a block index."""
    audit: MaybeDuration = MaybeDuration("")
    """The greatest age of a whole scan for a commit from lists; empty for no limit."""
    scrub: MaybeDuration = MaybeDuration("")
    """The time within which each file is compared with its digest again; empty for never."""
    mirrors: tuple[str, ...] = ()
    """Content URLs of other mirrors of the tree."""
    keep: Keep = Keep("30d")
    """The time for which commits are kept; `forever` for no limit."""
    keep_commits: Annotated[int, Meta(ge=1, le=1_000_000)] = 64
    """The number of newest commits that are kept at any age."""
    webhooks: tuple[WebHook, ...] = ()
    access: Literal["public", "private"] = "public"
    """`private` for a module that is visible only with a token (SERVE.md)."""
    relay: Annotated[str, Meta(pattern=r"^(?:/[^\x00\n]*)?$")] = ""
    """The state root of the huai-client whose commits are relayed; empty to commit the tree."""
    relay_name: Annotated[str, Meta(pattern=r"^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,127})?$")] = ""
    """The module's name in that huai-client; empty for the same name."""
    certificates: tuple[Annotated[str, Meta(pattern=r"^(?:sha256:[0-9a-f]{64}|CN=.+)$")], ...] = ()
    """Client certificates that give access like a token, by SHA-256 or by subject."""
    fallback: ModuleFallback = ModuleFallback()
    export: ModuleExport = ModuleExport()
    engine: ModuleEngine = ModuleEngine()
    static: StaticFiles = StaticFiles()

    @property
    def is_private(self) -> bool:
        """True if `serve` hides the module from clients without a token."""
        return self.access == "private"

    @property
    def in_fallback(self) -> bool:
        """True if rsync clients are served, which a private module must limit by user or host."""
        return self.fallback.kind != "off" and (not self.is_private or self._limits_rsync)

    @property
    def serves_content(self) -> bool:
        """True if `serve` serves files; large ones only if everybody may fetch them elsewhere."""
        if self.serve_content != "large":
            return self.serve_content
        open_urls = [url for url in self.content_urls if "@" not in url]
        limited = self._limits_rsync or self.fallback.hosts_deny
        return bool(open_urls and self.block_index_size) and not limited

    @property
    def _limits_rsync(self) -> bool:
        """True if the fallback serves the module only to some users or hosts."""
        return bool(self.fallback.auth_users or self.fallback.hosts_allow)

    @property
    def relay_urls(self) -> tuple[str, ...]:
        """The configured content URLs of a relayed module, not its commits'; empty for others."""
        return self.content_urls if self.relay else ()

    @property
    def block_index_size(self) -> int:
        """The size in bytes from which files have a block index; 0 if no file has one."""
        return self.block_index if self.digest != "off" else 0

    @property
    def scrub_span(self) -> int | None:
        """`scrub` in seconds; None for never."""
        return (seconds(self.scrub) if self.scrub else 0) or None

    @property
    def retention(self) -> Retention:
        """The commits to keep, by `keep` and `keep_commits`."""
        span = None if self.keep == "forever" else seconds(self.keep)
        return Retention(span, self.keep_commits)

    @property
    def rules(self) -> tuple[str, ...]:
        """The publish rules for downstreams, those of volatile files included."""
        return self.publish + volatile_rules(self.volatile)


class Cosigner(msgspec.Struct, frozen=True):
    """A further key that signs commits, configured as in `Signing`."""

    key: Annotated[str, Meta(pattern=r"^/[^\x00\n]*$")]
    command: tuple[Annotated[str, Meta(pattern=r"^[^\x00]+$")], ...] = ()


class Signing(msgspec.Struct, frozen=True):
    """The keys that sign commits."""

    key: Annotated[str, Meta(pattern=r"^/[^\x00\n]*$")]
    """The file of a private key, or of a public key with which the agent or `command` signs."""
    command: tuple[Annotated[str, Meta(pattern=r"^[^\x00]+$")], ...] = ()
    """A program that signs its standard input; `{namespace}` and `{key}` are replaced."""
    validity: TimeLimit = TimeLimit("7d")
    timeout: TimeLimit = TimeLimit("20s")
    """The time within which the agent or the command must sign."""
    cosigners: tuple[Cosigner, ...] = ()
    threshold: Annotated[int, Meta(ge=1, le=16)] = 1
    """The number of signatures, by `key` and `cosigners`, that a commit needs."""
    pending: bool = False
    """True if a commit waits for missing signatures of cosigners."""
