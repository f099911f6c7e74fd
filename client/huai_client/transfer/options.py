"""The administrator's options for transfers, checked when they are made."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from huai_client.config.allowed_addresses import AllowedAddresses
from huai_client.config.mirror import Mirror
from huai_client.config.tls import SYSTEM_TLS, TlsFiles
from huai_client.run.options import NEVER, Deadline
from huai_client.state.hosts import Hosts
from huai_client.transfer import batch
from huai_program.durations import seconds
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath

_FORBIDDEN = ("--del", "--max-delete", "--remove-", "--backup", "--inplace", "--append", "--daemon")
"""Prefixes of options by which rsync would delete, or change published files."""
_OWNED = frozenset(
    (
        *("--files-from", "--from0", "--no-relative", "--no-R", "--server", "--version", "--help"),
        *("--filter", "--exclude", "--exclude-from", "--include", "--include-from"),
        *("--existing", "--ignore-existing", "--ignore-non-existing", "--update", "--dry-run"),
        *("--cvs-exclude", "--no-perms", "--no-p", "--no-times", "--no-t"),
        *("--max-size", "--min-size", "--list-only"),
        *("--partial-dir", "--delay-updates", "--temp-dir", "--compare-dest", "--copy-dest"),
        *("--link-dest", "--write-batch", "--only-write-batch", "--read-batch"),
    )
)
"""Options that choose the files to transfer, or their target: only huai may do this."""
_LETTERS = frozenset("bnuCFfTV")
"""The short forms of such options."""
_WITH_VALUE = frozenset("eMB@")
"""Short options that take a value."""
_SEPARATE = frozenset(("-e", "--rsh", "--password-file"))
"""Options whose value may be the next argument."""
_CONNECTION = frozenset(
    (
        *("--rsync-path", "--ipv4", "--ipv6", "--address", "--port", "--sockopts", "--contimeout"),
        *("--blocking-io", "--no-blocking-io", "--no-motd", "--outbuf", "--early-input"),
        *("--compress", "--no-compress", "--no-z", "--compress-choice", "--compress-level"),
        *("--zc", "--zl", "--old-compress", "--new-compress", "--skip-compress"),
        *("--secluded-args", "--protect-args", "--no-s", "--old-args"),
        *("--whole-file", "--no-whole-file", "--no-W", "--verbose", "--quiet"),
    )
)
_CONNECTION_LETTERS = frozenset("46zsWvq")

_BACKOFF = 1.0
"""Seconds before the first retry of a batch."""

_HINT = "change it in the module's table of client.toml, or leave it out"


class TransferOptionsError(HuaiError):
    """An option that is malformed or not allowed."""

    exit_code = ExitCode.CONFIG


@dataclass(frozen=True, slots=True)
class TransferOptions:
    """The options of a transfer.  Raises `TransferOptionsError` for a wrong value."""

    streams: int = 2
    """Runs of rsync at a time; upstreams limit connections per address."""
    batch_files: int = batch.MAX_FILES
    batch_bytes: int = batch.MAX_BYTES
    bwlimit: int = 0
    """KiB/s of all streams together; 0 for no limit."""
    timeout: int = 600
    """Seconds without data, or with too little, after which a connection is ended."""
    contimeout: int = 60
    """Seconds to wait for the first response of a daemon."""
    extra: tuple[str, ...] = ()
    """Additional arguments for rsync, before huai's, which override them."""
    program: str = "rsync"
    retries: int = 5
    """Attempts after the first, for each batch."""
    backoff: float = field(default_factory=lambda: _BACKOFF)
    """Seconds before the first retry; doubled for each further one, with jitter."""
    patience: float = 3600.0
    """Seconds to wait at a full upstream that admits none of the streams."""
    connections: int = 0
    """The most connections to a host, of all runs of this client; 0: see `Hosts`."""
    volatile: Collection[RelPath] = frozenset()
    """Files that may have changed since the metadata were made."""
    http_headers: Path | None = None
    """A file with headers for the administrator's own URLs of HTTP."""
    snapshot: Snapshot | None = None
    """The metadata of the commit: rsync may request whole directories; None: by file only."""
    tls: TlsFiles = SYSTEM_TLS
    """Certificates configured for HTTPS."""
    allowed_addresses: AllowedAddresses | None = None
    """The addresses to which URLs and redirects may lead; None for any."""
    deadline: Deadline = NEVER
    """The time at which the transfer ends."""
    hosts: Hosts = field(default_factory=Hosts)
    """The record of failures and of connections, by host."""

    @classmethod
    def of(cls, mirror: Mirror) -> Self:
        """Return the options of a module; raises `TransferOptionsError` for a value not allowed."""
        module = mirror.config
        return cls(
            streams=module.streams,
            batch_files=module.batch_files,
            batch_bytes=module.batch_size,
            bwlimit=module.bwlimit,
            timeout=module.timeout,
            extra=module.rsync_options,
            patience=seconds(module.queue_time),
            connections=module.connections,
            http_headers=Path(module.http_headers) if module.http_headers else None,
            tls=mirror.tls,
            allowed_addresses=mirror.allowed_addresses,
        )

    def __post_init__(self) -> None:
        """Raise `TransferOptionsError` for a number too small, or a forbidden rsync option."""
        for name in ("streams", "batch_files", "batch_bytes", "timeout", "contimeout"):
            if getattr(self, name) < 1:
                raise TransferOptionsError(f"{name} must be at least 1", hint=_HINT)
        for name in ("bwlimit", "retries", "backoff", "patience", "connections"):
            if getattr(self, name) < 0:
                raise TransferOptionsError(f"{name} must not be negative", hint=_HINT)
        for argument in self.extra:
            if is_owned(argument) or "\0" in argument:
                raise TransferOptionsError(
                    f"rsync option {argument!r} is not allowed",
                    hint="leave it out: huai itself selects, deletes and publishes files",
                )


def is_owned(argument: str) -> bool:
    """Return True for an argument of rsync that only huai may pass."""
    if argument.startswith("--"):
        return argument.startswith(_FORBIDDEN) or argument.partition("=")[0] in _OWNED
    for letter in argument[1:] if argument.startswith("-") else "":
        if letter in _WITH_VALUE:
            return False
        if letter in _LETTERS:
            return True
    return False


def concerns_connections(extra: Iterable[str]) -> bool:
    """Return True if all of `extra`, options of rsync, are about connections, none about files."""
    arguments = iter(extra)
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if name in _SEPARATE:
            if not equals:
                next(arguments, None)
        elif argument.startswith("--"):
            if name not in _CONNECTION:
                return False
        elif not argument.startswith("-e"):
            letters = argument.removeprefix("-")
            if letters in ("", argument) or not _CONNECTION_LETTERS.issuperset(letters):
                return False
    return True


def without_secrets(extra: tuple[str, ...]) -> tuple[str, ...]:
    """Return `extra` for a URL of the upstream: without passwords and remote shells."""
    arguments_left: list[str] = []
    arguments = iter(extra)
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if name in ("--password-file", "--rsh", "-e"):
            if not equals:
                next(arguments, None)
        elif not argument.startswith("-e"):
            arguments_left.append(argument)
    return tuple(arguments_left)
