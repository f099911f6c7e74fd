"""The state of each mirror of a module at a moment.

Reads the files of `record` again only after a change.  Called in threads.
"""

import time
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from huai_program.durations import seconds
from huai_schema.codec.attestation import Attestation
from huai_server.config.mirrors import AllowedDownstream, Mirrors
from huai_server.mirrors.judge import Commits
from huai_server.mirrors.lag import LagHistory
from huai_server.mirrors.record import (
    Holding,
    Probe,
    holding_path,
    probe_path,
    read_holding,
    read_probe,
)
from huai_server.state.file_stamp import FileCache, file_stamp

if TYPE_CHECKING:
    from huai_server.state.file_stamp import FileStamp

_TICK = 1_000_000_000
"""Nanoseconds, more than a tick of any kernel's clock."""
_Record = tuple[str, Holding, Probe | None]
_days = lru_cache(maxsize=8192)(LagHistory.days)
_percentiles = lru_cache(maxsize=8192)(LagHistory.percentiles)
_Inputs = tuple[Mirrors, Commits, int, tuple[_Record, ...]]


class MirrorState(NamedTuple):
    """The state of one mirror of one module."""

    mirror: str
    """Its name in `allowed_downstreams`."""
    attestation: Attestation
    since: int
    """The time of the first attestation of that commit, in seconds since the epoch."""
    lag: int
    """Seconds for which a newer commit has existed; 0 if the mirror has the newest."""
    history: LagHistory
    now: int
    """The moment of this state, in seconds since the epoch."""
    offered: bool
    """True if clients are sent to the mirror, which is complete and recent enough."""
    complete_at: int
    """The latest time as of which the mirror is complete, in seconds since the epoch."""
    probe: Probe | None
    """The result of the last probe; None if there was none."""
    downstream: AllowedDownstream
    """Its table of server.toml."""

    @property
    def percentiles(self) -> tuple[int, ...]:
        """The `lag.PERCENTILES` of the lag over 30 days, in seconds."""
        return _percentiles(self.history, self.now, self.lag)

    @property
    def days(self) -> tuple[int | None, ...]:
        """The most lag of each day in seconds, the oldest first; None before the record."""
        return _days(self.history, self.now, self.lag)


class MirrorStates:
    """The states of the mirrors of all modules, cached until their inputs change."""

    def __init__(self) -> None:
        self._holdings = FileCache[tuple[Path, str], Holding | None]()
        self._probes = FileCache[Path, Probe | None]()
        self._records: dict[str, tuple[Mirrors, FileStamp | None, tuple[_Record, ...]]] = {}
        """By module, with the stamp of its folder, or None if that may miss a change."""
        self._cached: dict[str, tuple[_Inputs, tuple[MirrorState, ...]]] = {}
        """The inputs and results by module; identical objects compare at once."""

    def read(
        self, mirrors: Mirrors, module: str, commits: Commits, now: int
    ) -> tuple[MirrorState, ...]:
        """Return the states for one module at `now` (seconds since the epoch), the least lag first.

        Only of mirrors that attested the module, with the identity that `commits` have.
        """
        inputs = (mirrors, commits, now, self._read_records(mirrors, module))
        cached = self._cached.get(module)
        if cached is None or cached[0] != inputs:
            states = (
                _state_of(mirrors, name, holding, probe, commits, now)
                for name, holding, probe in inputs[3]
                # A module that was made again has another identity, and older attestations of it
                # do not count.
                if holding.attestation.identity == commits.identity
            )
            ranked = tuple(sorted(states, key=lambda each: (each.lag, each.mirror)))
            cached = self._cached[module] = (inputs, ranked)
        return cached[1]

    def _read_records(self, mirrors: Mirrors, module: str) -> tuple[_Record, ...]:
        """Return the mirrors that attested the module: the same object until their folder changes.

        Each file is replaced by a rename, which sets the time of the folder.
        """
        stamp, records = file_stamp(mirrors.folder / module), self._records.get(module)
        if not stamp:
            return ()
        if records is None or records[:2] != (mirrors, stamp):
            # Two renames within a tick of the kernel's clock set the same time.
            is_settled = stamp[1] < time.time_ns() - _TICK
            read = tuple(self._look_up_records(mirrors, module))
            records = self._records[module] = mirrors, stamp if is_settled else None, read
        return records[2]

    def _look_up_records(self, mirrors: Mirrors, module: str) -> Iterator[_Record]:
        """Yield the mirrors that attested the module, with their probes."""
        for name, allowed in mirrors.allowed.items():
            place = holding_path(mirrors.folder, module, name)
            read = partial(read_holding, place, allowed.key)
            holding = self._holdings.get((place, allowed.key), place, read)
            if holding is not None:
                place = probe_path(mirrors.folder, module, name)
                yield name, holding, self._probes.get(place, place, partial(read_probe, place))


def _state_of(
    mirrors: Mirrors,
    name: str,
    holding: Holding,
    probe: Probe | None,
    commits: Commits,
    now: int,
) -> MirrorState:
    """Return a mirror's state at `now`, in seconds since the epoch.

    It is offered if it is recent and complete, its URLs are allowed, and the last probe found
    neither other content nor missing files.
    """
    attestation, settings = holding.attestation, mirrors.settings
    lag = commits.lag(attestation.serial, now)
    silence = abs(now - attestation.time)  # from the future if both clocks were wrong then
    near = lag <= seconds(settings.max_lag) and silence <= seconds(settings.max_silence)
    downstream = mirrors.allowed[name]
    claimed = all(map(downstream.may_claim, attestation.urls))
    offered = near and claimed and not attestation.partial and (probe is None or probe.trusted)
    complete_at = now - lag if lag else attestation.time
    return MirrorState(
        *(name, attestation, holding.since, lag, holding.history, now, offered, complete_at),
        *(probe, downstream),
    )
