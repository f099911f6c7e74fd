"""Acceptance of attestations, and the record to keep of an accepted one.

Pure: the caller has the clock, the disk and the commits.
"""

from typing import NamedTuple

from huai_schema.codec.attestation import SignedAttestation
from huai_schema.errors import ExitCode, HuaiError
from huai_server.config.mirrors import AllowedDownstream
from huai_server.mirrors.lag import LagHistory
from huai_server.mirrors.record import Holding


class RefusedError(HuaiError):
    """An attestation is not accepted."""

    exit_code = ExitCode.UNSIGNED

    def __init__(self, message: str, *, hint: str = "", forbidden: bool = False) -> None:
        """Set `forbidden` if the downstream may never attest this, not only now."""
        super().__init__(message, hint=hint)
        self.forbidden = forbidden


class Commits(NamedTuple):
    """The commits of a module that are still in its repository."""

    identity: str
    times: dict[int, tuple[str, int]]
    """The id and time (seconds since the epoch) of each commit by serial, in ascending order."""

    @property
    def newest(self) -> int:
        """The serial of the newest commit; 0 without a commit."""
        return next(reversed(self.times), 0)

    def lag(self, serial: int, now: int) -> int:
        """Return the seconds until `now` for which a commit newer than `serial` has existed.

        0 for the newest.  The true lag is longer if the commit after `serial` was dropped.
        """
        if serial >= self.newest:
            return 0
        after = self.times.get(serial + 1)
        since = after[1] if after else min(t for n, (_, t) in self.times.items() if n > serial)
        return max(0, now - since)


def check_attestation(
    signed: SignedAttestation,
    module: str,
    allowed: AllowedDownstream,
    commits: Commits,
    now: int,
    tolerance: int,
) -> None:
    """Raise `RefusedError` unless `allowed`, whose key signed it, may attest this of `module`.

    It must be of this module and identity, its URLs on hosts that `allowed` may claim, and its
    commit one of `commits`, the module's.  Its time may differ from `now` by at most `tolerance`
    seconds.
    """
    attestation = signed.attestation
    if attestation.module != module:
        raise RefusedError(
            "the attestation is of another module", hint="send it to that module's address"
        )
    if attestation.identity != commits.identity:
        raise RefusedError(
            "the attestation is of a module with another identity",
            hint="the module was made again: sync with --accept-rollback if that is intended",
        )
    if abs(attestation.time - now) > tolerance:
        raise RefusedError(
            f"the time of the attestation differs by more than {tolerance} s from this server's",
            hint="set the clock of the downstream",
        )
    for url in attestation.urls:
        if not allowed.may_claim(url):
            raise RefusedError(
                "a URL has a host that this downstream may not claim",
                hint="allowed_downstreams in server.toml lists the hosts of a downstream",
                forbidden=True,
            )
    if commits.times.get(attestation.serial, ("",))[0] != attestation.commit:
        raise RefusedError(
            "no commit with this serial and id is kept here", hint="sync, then attest again"
        )


def next_holding(
    before: Holding | None, signed: SignedAttestation, text: bytes, commits: Commits, now: int
) -> Holding:
    """Return the record of an accepted attestation, after the mirror's former record `before`.

    The first one follows None.  `text` is the attestation as received; `now` is in seconds since
    the epoch.  Raises `RefusedError` if the attestation is not newer than `before`.
    """
    attestation = signed.attestation
    if before is None:
        return Holding(signed, text, attestation.time, LagHistory(min(attestation.time, now)))
    if attestation.time <= before.attestation.time:
        raise RefusedError("the attestation is not newer than the last one", hint="attest again")
    end = max(before.history.end, min(attestation.time, now))
    lag = commits.lag(before.attestation.serial, end)
    since = before.since if before.attestation.commit == attestation.commit else attestation.time
    return Holding(signed, text, since, before.history.extended(end, lag))
