"""How each mirror of a module stands at a moment.

Reads what `record` keeps, again only when a file has changed.  Asked in threads.
"""

from pathlib import Path
from typing import NamedTuple

from huai_schema.codec.attestation import Attestation
from huai_server.mirrors.judge import Commits
from huai_server.mirrors.record import Holding, holding_place, read_holding
from huai_server.mirrors.tables import Mirrors

_Stamp = tuple[int, int]


class Standing(NamedTuple):
    """One mirror of one module."""

    mirror: str
    said: Attestation
    since: int
    """When it first held that commit, seconds since the epoch."""
    lag: int
    """For how many seconds there has been a newer one; 0: it holds the newest."""
    percentiles: tuple[int, ...]
    """Of the lag over 30 days, as `lag.PERCENTILES` has them."""
    offered: bool
    """Whether it is named to who looks for a mirror: it has all, and is near enough."""
    complete_at: int
    """As of when it has all that there was, seconds since the epoch."""


class Standings:
    """Those of all modules."""

    def __init__(self) -> None:
        """Reads nothing yet."""
        self._known: dict[tuple[Path, str], tuple[_Stamp, Holding | None]] = {}

    def read(
        self, mirrors: Mirrors, module: str, commits: Commits, now: int
    ) -> tuple[Standing, ...]:
        """Those of one module `now` (seconds since the epoch), the freshest first."""
        found = []
        for name, allowed in mirrors.allowed.items():
            holding = self._holding(holding_place(mirrors.folder, module, name), allowed.key)
            # A module that was made anew has another identity: what was held is not this.
            if holding is not None and holding.said.identity == commits.identity:
                found.append(_standing(mirrors, name, holding, commits, now))
        return tuple(sorted(found, key=lambda each: (each.lag, each.mirror)))

    def _holding(self, place: Path, key: str) -> Holding | None:
        """What a file says, which `serve` replaces and never changes."""
        try:
            status = place.stat()
        except OSError:
            self._known.pop((place, key), None)
            return None
        stamp = (status.st_ino, status.st_mtime_ns)
        known = self._known.get((place, key))
        if known is None or known[0] != stamp:
            known = self._known[place, key] = (stamp, read_holding(place, key))
        return known[1]


def _standing(
    mirrors: Mirrors, name: str, holding: Holding, commits: Commits, now: int
) -> Standing:
    said, settings = holding.said, mirrors.settings
    lag = commits.lag(said.serial, now)
    near = lag <= settings.lag_seconds and now - said.time <= settings.silence_seconds
    claimed = all(map(mirrors.allowed[name].may_claim, said.urls))
    offered = near and claimed and not said.partial
    percentiles = holding.history.percentiles(now, lag)
    complete_at = now - lag if lag else said.time
    return Standing(name, said, holding.since, lag, percentiles, offered, complete_at)
