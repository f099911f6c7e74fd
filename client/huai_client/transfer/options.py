"""What an administrator may set about transfers, checked where it is made."""

from dataclasses import dataclass, field

from huai_client import batch
from huai_client.deadline import NEVER, Deadline
from huai_client.hosts import Hosts
from huai_schema.errors import ExitCode, HuaiError

_FORBIDDEN = ("--del", "--remove-", "--files-from", "--backup", "--inplace", "--append", "--daemon")

_HINT = "change it in the module's table of client.toml, or leave it out"


class TransferOptionsError(HuaiError):
    """An option that cannot be obeyed."""

    exit_code = ExitCode.CONFIG


@dataclass(frozen=True, slots=True)
class TransferOptions:
    """How to transfer.  Raises `TransferOptionsError` for values that make no sense."""

    streams: int = 2
    """Runs of rsync at a time; upstreams limit connections per address."""
    batch_files: int = batch.MAX_FILES
    batch_bytes: int = batch.MAX_BYTES
    bwlimit: int = 0
    """KiB/s of all streams together; 0: no limit."""
    timeout: int = 600
    """Seconds without any data, or with a trickle only, before a connection counts as dead."""
    contimeout: int = 60
    """Seconds to wait for a daemon to answer at all."""
    extra: tuple[str, ...] = ()
    """More arguments for rsync, before ours where they say the same."""
    program: str = "rsync"
    retries: int = 5
    """Attempts after the first, for each batch."""
    backoff: float = 1.0
    """Seconds before the first retry; doubled for each further one, with jitter."""
    patience: float = 3600.0
    """Seconds to wait in line at an upstream that lets none of our streams in."""
    connections: int = 0
    """How many each host is given at a time, by all runs of this client; 0: see `Hosts`."""
    deadline: Deadline = NEVER
    """When to stop."""
    hosts: Hosts = field(default_factory=Hosts)
    """What is known of the upstreams, and who has a connection to them."""

    def __post_init__(self) -> None:
        """Refuse what would hang, do nothing or delete."""
        for name in ("streams", "batch_files", "batch_bytes", "timeout", "contimeout"):
            if getattr(self, name) < 1:
                raise TransferOptionsError(f"{name} has to be at least 1", hint=_HINT)
        for name in ("bwlimit", "retries", "backoff", "patience", "connections"):
            if getattr(self, name) < 0:
                raise TransferOptionsError(f"{name} must not be negative", hint=_HINT)
        for argument in self.extra:
            if argument.startswith(_FORBIDDEN) or "\0" in argument:
                raise TransferOptionsError(
                    f"rsync option {argument!r} is not allowed",
                    hint="huai deletes, lists and publishes files itself",
                )
