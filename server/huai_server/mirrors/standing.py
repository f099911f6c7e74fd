"""How each mirror of a module stands at a moment.

Reads what `record` keeps, again only when a file has changed.  Asked in threads.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from huai_schema.codec.attestation import Attestation
from huai_server.config.mirrors import Mirrors
from huai_server.mirrors.judge import Commits
from huai_server.mirrors.record import (
    Holding,
    Probe,
    holding_place,
    probe_place,
    read_holding,
    read_probe,
)
from huai_server.state.file_stamp import FileCache

_Kept = tuple[str, Holding, Probe | None]
_Asked = tuple[Mirrors, Commits, int, tuple[_Kept, ...]]


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
    probe: Probe | None
    """What the last probe found; None: it was not probed."""


class Standings:
    """Those of all modules."""

    def __init__(self) -> None:
        self._holdings = FileCache[tuple[Path, str], Holding | None]()
        self._probes = FileCache[Path, Probe | None]()
        self._told: dict[str, tuple[_Asked, tuple[Standing, ...]]] = {}
        """By module; what is the same object as before is not even compared."""

    def read(
        self, mirrors: Mirrors, module: str, commits: Commits, now: int
    ) -> tuple[Standing, ...]:
        """Those of one module `now` (seconds since the epoch), the freshest first."""
        asked = (mirrors, commits, now, tuple(self._kept_of(mirrors, module)))
        told = self._told.get(module)
        if told is None or told[0] != asked:
            found = (
                _standing(mirrors, name, holding, probe, commits, now)
                for name, holding, probe in asked[3]
                # A module that was made anew has another identity: what was held is not this.
                if holding.said.identity == commits.identity
            )
            ranked = tuple(sorted(found, key=lambda each: (each.lag, each.mirror)))
            told = self._told[module] = (asked, ranked)
        return told[1]

    def _kept_of(self, mirrors: Mirrors, module: str) -> Iterator[_Kept]:
        for name, allowed in mirrors.allowed.items():
            place = holding_place(mirrors.folder, module, name)
            read = partial(read_holding, place, allowed.key)
            holding = self._holdings.get((place, allowed.key), place, read)
            if holding is not None:
                place = probe_place(mirrors.folder, module, name)
                yield name, holding, self._probes.get(place, place, partial(read_probe, place))


def _standing(
    mirrors: Mirrors,
    name: str,
    holding: Holding,
    probe: Probe | None,
    commits: Commits,
    now: int,
) -> Standing:
    said, settings = holding.said, mirrors.settings
    lag = commits.lag(said.serial, now)
    near = lag <= settings.lag_seconds and now - said.time <= settings.silence_seconds
    claimed = all(map(mirrors.allowed[name].may_claim, said.urls))
    offered = near and claimed and not said.partial and (probe is None or probe.trusted)
    percentiles = holding.history.percentiles(now, lag)
    complete_at = now - lag if lag else said.time
    return Standing(name, said, holding.since, lag, percentiles, offered, complete_at, probe)
