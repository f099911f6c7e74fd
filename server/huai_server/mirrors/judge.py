"""Whether an attestation is taken, and what is kept of it then.

Pure: the caller has the clock, the disk and the commits.
"""

from collections.abc import Mapping
from typing import NamedTuple

from huai_schema.codec.attestation import SignedAttestation
from huai_schema.errors import ExitCode, HuaiError
from huai_server.config.mirrors import AllowedDownstream
from huai_server.mirrors.lag import LagHistory
from huai_server.mirrors.record import Holding


class RefusedError(HuaiError):
    """An attestation that is not taken."""

    exit_code = ExitCode.UNSIGNED

    def __init__(self, message: str, *, hint: str = "", forbidden: bool = False) -> None:
        """`forbidden`: the downstream may not say this at all; else it does not fit."""
        super().__init__(message, hint=hint)
        self.forbidden = forbidden


class Commits(NamedTuple):
    """The commits of a module that are kept."""

    identity: str
    """Of the module."""
    times: Mapping[int, tuple[str, int]]
    """By serial, growing: the commit's id, and when it was made in seconds since the epoch."""

    @property
    def newest(self) -> int:
        """The serial of the newest; 0: there is none."""
        return max(self.times, default=0)

    def lag(self, serial: int, now: int) -> int:
        """For how many seconds there has been a commit after this one.

        At least so many, if the next one is not kept any more.
        """
        if serial >= self.newest:
            return 0
        after = self.times.get(serial + 1)
        made = after[1] if after else min(t for n, (_, t) in self.times.items() if n > serial)
        return max(0, now - made)


def judge(
    signed: SignedAttestation,
    module: str,
    allowed: AllowedDownstream,
    commits: Commits,
    now: int,
    tolerance: int,
) -> None:
    """Raise `RefusedError` unless `allowed`, whose key it is, may say this of `module` now."""
    said = signed.said
    if said.module != module:
        raise RefusedError("it is of another module", hint="send it to the address of that")
    if said.identity != commits.identity:
        raise RefusedError(
            "it is of a module of another identity",
            hint="the module was made anew: sync with --accept-rollback if that is right",
        )
    if abs(said.time - now) > tolerance:
        raise RefusedError(
            f"its time is more than {tolerance} s from this server's", hint="set the clock"
        )
    for url in said.urls:
        if not allowed.may_claim(url):
            raise RefusedError(
                "a URL has a host that this downstream may not claim",
                hint="the hosts of a downstream stand in allowed_downstreams of server.toml",
                forbidden=True,
            )
    if commits.times.get(said.serial, ("",))[0] != said.commit:
        raise RefusedError(
            "no commit of this serial and id is kept here", hint="sync, then attest again"
        )


def following(
    before: Holding | None, signed: SignedAttestation, text: bytes, commits: Commits, now: int
) -> Holding:
    """What is kept of one that is taken; `RefusedError` if it is not newer than the last one."""
    said = signed.said
    if before is None:
        return Holding(signed, text, said.time, LagHistory(min(said.time, now)))
    if said.time <= before.said.time:
        raise RefusedError("it is not newer than the last one", hint="attest again")
    end = max(before.history.end, min(said.time, now))
    lag = commits.lag(before.said.serial, end)
    since = before.since if before.said.commit == said.commit else said.time
    return Holding(signed, text, since, before.history.extended(end, lag))
