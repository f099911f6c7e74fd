"""Maintenance of the metadata repository of one module: few packs, and no unneeded object.

Only composes.  It never breaks a running fetch: a replaced pack stays readable for an hour
(`replaced`), and every object that a ref leads to is always in some findable pack.  Commits may run
while packs are merged, which takes long; the module's lock is held only for moments before and
after.  Only to drop old commits it is held throughout: a commit could rely on a dropped object.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import NamedTuple

from huai_program.locking import locked
from huai_server.config.retention import Retention, is_worth_repack
from huai_server.state.errors import storage_errors
from huai_server.state.paths import ModulePlaces
from huai_server.store.block_indices import BlockIndices
from huai_server.store.commit_graph import remove_graphs
from huai_server.store.disk_use import DiskUse, disk_use
from huai_server.store.pack_files import PackFile, list_packs
from huai_server.store.repack import Repack
from huai_server.store.replaced import remove_replaced
from huai_server.store.repository import Head, Repository, metadata_errors

_FACTOR = 2


def roll_up(counts: Sequence[int]) -> int:
    """Return how many of the smallest packs to merge: 0, or 2 and more.

    Then each pack has at least twice the objects of the next smaller one.  `counts` are the numbers
    of objects of all packs, ascending.
    """
    split = len(counts) - 1
    while split > 0 and counts[split] >= _FACTOR * counts[split - 1]:
        split -= 1
    if split <= 0:
        return 0
    # A pack less than twice as large as all below it together joins them.
    total = sum(counts[:split])
    while split < len(counts) and counts[split] < _FACTOR * total:
        total += counts[split]
        split += 1
    return split


class MaintenancePlan(NamedTuple):
    """The work of a maintenance."""

    loose: int
    """Loose objects that are put into a pack."""
    merged: int
    """Packs that become one, including the pack of the loose objects."""
    dropped: int
    """Old commits that are dropped, with all objects that only they need."""


class Maintained(NamedTuple):
    """The result of a maintenance."""

    plan: MaintenancePlan
    before: DiskUse
    after: DiskUse


def foresee(
    places: ModulePlaces, retention: Retention, *, now: float
) -> tuple[MaintenancePlan, DiskUse]:
    """Return what `maintain` would do, and the present disk use; `now` is seconds since the epoch.

    Changes nothing, and takes no lock.  Raises `StoreError` or `PackIndexError` for a damaged
    repository.
    """
    with storage_errors(places.repository):
        repository = Repository(places.repository)
        repack = Repack(places.repository)
        loose = len(repack.loose())
        counts = [pack.objects for pack in list_packs(repository.pack_folder)]
        counts += [loose] if loose else []
        cut = repack.unreachable.exists()
        outdated = _find_outdated(repository, retention, now, at_once=cut)
        everything = cut or bool(outdated.histories)
        merged = len(counts) if everything else roll_up(sorted(counts))
        return MaintenancePlan(loose, merged, outdated.commits), disk_use(places)


def maintain(
    places: ModulePlaces, load_retention: Callable[[], Retention], *, now: float, wait: float = 0
) -> Maintained:
    """Pack loose objects, merge small packs, and drop old commits and unneeded files.

    `load_retention` is called under the module's lock, for which it may have waited for hours.

    Deletes remains of killed runs too.  Raises `LockedError` if another maintenance, or a commit,
    lasts longer than `wait` seconds; `StoreError`, `PackIndexError` or `GitFailedError` for a
    damaged repository.  `now` is in seconds since the epoch.
    """
    with storage_errors(places.repository), locked(places.maintaining, wait=wait):
        before = disk_use(places)
        with metadata_errors(places.folder.name):
            done = _Maintenance(places, load_retention, now).run(wait)
        return Maintained(done, before, disk_use(places))


class _Maintenance:
    """One maintenance of a module; the caller holds the lock `maintaining`."""

    def __init__(
        self, places: ModulePlaces, load_retention: Callable[[], Retention], now: float
    ) -> None:
        self._places = places
        self._load_retention = load_retention
        self._now = now
        self._repack = Repack(places.repository)

    def run(self, wait: float) -> MaintenancePlan:
        """Under the module's lock, drop old histories and pack loose objects; then merge packs.

        Waits at most `wait` seconds for the lock.  If histories were dropped, all packs become one
        under the lock; otherwise only small ones are merged, without the lock.
        """
        with locked(self._places.lock, wait=wait):
            repository = Repository(self._places.repository)
            self._remove_expired(repository)
            loose = self._repack.loose()
            if loose:
                self._repack.pack_loose(loose)
            dropped = self._drop_histories(repository)
            packs = list_packs(repository.pack_folder)
            if self._repack.unreachable.exists():
                self._keep_reachable(repository, packs)
                return MaintenancePlan(len(loose), len(packs), dropped)
        return MaintenancePlan(len(loose), self._merge(packs), dropped)

    def _remove_expired(self, repository: Repository) -> None:
        """Delete remains of killed runs, graph files, and outdated packs and block indices."""
        repository.remove_unfinished()
        remove_graphs(repository.path)  # they may name commits that are dropped, now or before
        remove_replaced(repository.pack_folder, self._now)
        head = repository.head()
        if head is not None:
            _, snapshot = repository.snapshot(head)
            BlockIndices(repository.path).prune(snapshot, self._now)

    def _drop_histories(self, repository: Repository) -> int:
        """Delete the refs of outdated histories; return the number of their commits, or 0.

        Before that it records on the disk that objects may be unreachable.
        """
        # A killed run has dropped some: everything is packed again in any case.
        cut = self._repack.unreachable.exists()
        outdated = _find_outdated(repository, self._load_retention(), self._now, at_once=cut)
        if outdated.histories:
            self._repack.note_unreachable()
            repository.forget_histories(head.commit for head in outdated.histories)
        return outdated.commits

    def _keep_reachable(self, repository: Repository, packs: list[PackFile]) -> None:
        """Replace `packs`, which are all, by one pack with all objects reachable from a ref.

        Then deletes the record that objects may be unreachable.
        """
        heads = [repository.head(), *repository.past()]
        ends = {bytes.fromhex(head.commit) for head in heads if head}
        new = self._repack.merge_reachable(list_packs(repository.pack_folder, keep=True), ends)
        self._repack.replace(new, packs, self._now)
        self._repack.unreachable.unlink()

    def _merge(self, packs: list[PackFile]) -> int:
        """Merge the smallest of `packs`, which are in ascending order; return how many, or 0.

        Waits for the module's lock before they are replaced.
        """
        split = roll_up([pack.objects for pack in packs])
        if split == 0:
            return 0
        new = self._repack.merge(packs[:split], packs[split:])
        with locked(self._places.lock, wait=inf):  # keep the result of long work
            self._repack.replace(new, packs[:split], self._now)
        return split


class _Outdated(NamedTuple):
    """The histories that can be dropped, by their last commits, and the number of all commits."""

    histories: tuple[Head, ...]
    commits: int


def _find_outdated(
    repository: Repository, retention: Retention, now: float, *, at_once: bool
) -> _Outdated:
    """Return the histories that `retention` drops.

    Returns none if they have too few commits to pack all objects again, unless `at_once`.  `now`
    is in seconds since the epoch.
    """
    head = repository.head()
    newest = head.info.serial if head else 0
    histories = tuple(
        each
        for each in repository.past()
        if retention.drops(each.info.serial, each.time, newest=newest, now=now)
    )
    last = max((head.info.serial for head in histories), default=0)
    serials = [head.info.serial for head in repository.history()] if histories else []
    commits = sum(serial <= last for serial in serials)
    if at_once or is_worth_repack(commits, len(serials) - commits):
        return _Outdated(histories, commits)
    return _Outdated((), 0)
