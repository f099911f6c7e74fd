"""A year of commits with `maintain` every night: does anything grow but the number of commits?

A real tree, in which each update changes a thousandth of the entries, anywhere; a commit from the
list that the update leaves, with digests; real downstreams that fetch.  Only the clock is
simulated.  `--rounds` times a hundred commits make the year; after `--minutes` it ends where it is.
"""

import resource
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple
from unittest import mock

from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.repository import Repository as Downstream
from huai_server.actions import modules
from huai_server.commit.change_lists import read_lists
from huai_server.commit.result import CommitOptions
from huai_server.config.load import load
from huai_server.state.paths import module_places
from huai_server.store.disk_use import disk_use
from huai_server.store.maintain import maintain
from tests.bench.figures import Figure, show
from tests.bench.programs import serving
from tests.bench.stand import Stand, show_progress
from tests.bench.upstream.update import Mirror
from tests.support.counting_proxy import Counted, counting

_MODULE = "year"
_CHURN = 0.001
_ROUND = 100
_WEEKS = 52
_NIGHTS = 7
"""In a week."""
_QUARTERS = 4
_DAY = 86_400
_BEHIND = 100
"""Commits that a downstream missed which comes rarely."""
_EPOCH = 1_700_000_000


class Cost(NamedTuple):
    """The cost of one call."""

    wall: float
    cpu: float
    """With all children that have ended."""


class Fetched(NamedTuple):
    """The cost of a fetch."""

    wall: float
    bytes: int
    """That came from the server."""


class Week(NamedTuple):
    """The measurements at the end of a week; medians for commits and nights."""

    commits: int
    """Since the year began."""
    bytes: int
    commit: Cost
    maintain: Cost
    poll: float
    step: Fetched
    leap: Fetched
    clone: Fetched
    follower: int
    """Bytes of the repository of a downstream that follows all year."""


def figures(stand: Stand) -> Iterator[Figure]:
    """Compare the last quarter of the year with the second one, which has as much history."""
    weeks = list(_weeks(stand))
    quarter = max(1, len(weeks) // _QUARTERS)
    early, late = weeks[quarter : 2 * quarter] or weeks, weeks[-quarter:]
    peer = "second quarter"
    largest = max(week.bytes for week in weeks)
    note = (
        f"{weeks[-1].commits:,} of {stand.rounds * _ROUND:,} commits of {_CHURN:.1%} churn; the"
        f" repository has {show(largest, 'B')} at most"
    )
    for number, (title, unit, value) in enumerate(_rows()):
        ours, theirs = (median(map(value, part)) for part in (late, early))
        name = f"a year: {title}, last quarter"
        yield Figure(name, ours, unit, peer, theirs, note="" if number else note)


def _rows() -> Iterator[tuple[str, str, Callable[[Week], float]]]:
    yield "repository after a week's commits", "B", lambda week: week.bytes
    yield "commit", "s", lambda week: week.commit.wall
    yield "commit, CPU", "s", lambda week: week.commit.cpu
    yield "maintain, every night", "s", lambda week: week.maintain.wall
    yield "maintain, CPU", "s", lambda week: week.maintain.cpu
    yield "poll, nothing new", "s", lambda week: week.poll
    yield "fetch, one commit behind", "s", lambda week: week.step.wall
    yield "fetch, one commit behind, bytes", "B", lambda week: week.step.bytes
    yield f"fetch, {_BEHIND} commits behind", "s", lambda week: week.leap.wall
    yield f"fetch, {_BEHIND} commits behind, bytes", "B", lambda week: week.leap.bytes
    yield "first fetch", "s", lambda week: week.clone.wall
    yield "first fetch, bytes", "B", lambda week: week.clone.bytes
    yield "repository of a downstream", "B", lambda week: week.follower


def _weeks(stand: Stand) -> Iterator[Week]:
    """Print each figure at once, so that a killed run leaves the ones it had."""
    began = time.monotonic()
    rounds = max(3, stand.rounds * _ROUND // _WEEKS)
    upstream = _Upstream(stand)
    with serving(stand.server) as port, counting(f"http://127.0.0.1:{port}") as wire:
        near, far = (_Follower(stand.folder / name, wire) for name in ("near", "far"))
        for number in range(_WEEKS):
            spent, nights = [], []
            for commit in range(rounds):
                upstream.now = _EPOCH + int((number + commit / rounds) * _NIGHTS * _DAY)
                if commit * _NIGHTS // rounds != (commit - 1) * _NIGHTS // rounds:
                    nights.append(measured(upstream.maintain))
                spent.append(upstream.commit())
                if commit == max(0, rounds - 1 - _BEHIND):
                    far.fetch()
                if commit == rounds - 2:
                    near.fetch()
            size = upstream.bytes
            step, leap, poll = near.fetch(), far.fetch(), near.poll()
            clone = _clone(stand.folder / "clone", wire)
            costs = _median(spent), _median(nights)
            done = (number + 1) * rounds
            week = Week(done, size, *costs, poll, step, leap, clone, near.bytes)
            show_progress(f"week {number + 1}: {_line(week)}")
            yield week
            if time.monotonic() - began > stand.minutes * 60:
                show_progress(f"{stand.minutes:g} minutes are over after {done:,} commits")
                return


def _clone(folder: Path, wire: Counted) -> Fetched:
    """A first fetch."""
    cost = _Follower(folder, wire).fetch()
    shutil.rmtree(folder)
    return cost


def _line(week: Week) -> str:
    times = f"{week.step.wall:.2f}, {week.leap.wall:.2f}, {week.clone.wall:.2f} s"
    sizes = ", ".join(show(each.bytes, "B") for each in (week.step, week.leap, week.clone))
    return (
        f"{week.commits:,} commits, {show(week.bytes, 'B')}; commit {week.commit.wall:.3f} s, CPU"
        f" {week.commit.cpu:.3f} s; maintain {week.maintain.wall:.2f} s, CPU"
        f" {week.maintain.cpu:.2f} s; poll {week.poll:.3f} s; fetch 1, {_BEHIND} behind, all:"
        f" {times}, {sizes}; downstream {show(week.follower, 'B')}"
    )


class _Upstream:
    """A module of the stand, whose clock is ours."""

    def __init__(self, stand: Stand) -> None:
        self._root = stand.server.root
        self._places = module_places(self._root, _MODULE)
        stand.server.run("add", _MODULE, stand.tree, "--digest", "now")
        self._retention = load(self._root).module(_MODULE).retention
        self._mirror = Mirror(stand.tree)
        self._entries = max(1, int(stand.entries * _CHURN))
        self._list = stand.folder / "list"
        self._updates = 0
        self.now = _EPOCH
        """Seconds since the epoch."""
        self._commit(CommitOptions())

    def commit(self) -> Cost:
        """Commit after an update."""
        self._updates += 1
        self._list.write_bytes(self._mirror.update(self._entries, self._updates, self.now))
        lists = partial(read_lists, [str(self._list)], "auto")
        return measured(partial(self._commit, CommitOptions(lists=lists)))

    def maintain(self) -> None:
        """As the timer does it."""
        maintain(self._places, lambda: self._retention, now=self.now)

    @property
    def bytes(self) -> int:
        """On the disk, with the caches of commits."""
        return disk_use(self._places).bytes

    def _commit(self, options: CommitOptions) -> None:
        with mock.patch.object(time, "time", return_value=float(self.now)):
            result = modules.commit(self._root, _MODULE, options).result
        if not result.changed or (result.listed and result.listed.scan_cause):
            raise RuntimeError(f"not what was to be measured: {result}")


class _Follower:
    """A downstream's metadata."""

    def __init__(self, folder: Path, wire: Counted) -> None:
        self._folder = folder
        self._wire = wire
        self._url = MetadataUrl.of(wire.url, _MODULE)

    def fetch(self) -> Fetched:
        """Bring it up to date."""
        before = self._wire.received
        cost = measured(self._fetch)
        return Fetched(cost.wall, self._wire.received - before)

    def poll(self) -> float:
        """Ask for something newer; seconds."""
        repository = Downstream(self._folder)
        return measured(partial(repository.newest_commit, self._url)).wall

    @property
    def bytes(self) -> int:
        """On the disk."""
        return sum(each.stat().st_size for each in self._folder.rglob("*") if each.is_file())

    def _fetch(self) -> None:
        repository = Downstream(self._folder)
        repository.keep([repository.fetch(self._url).id])
        repository.repack()  # as a sync does


def measured(work: Callable[[], object]) -> Cost:
    """Measure the cost of a call."""
    cpu, wall = _processor(), time.perf_counter()
    work()
    return Cost(time.perf_counter() - wall, _processor() - cpu)


def _processor() -> float:
    """Seconds of this process and of its children that have ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def _median(costs: list[Cost]) -> Cost:
    return Cost(median(each.wall for each in costs), median(each.cpu for each in costs))
