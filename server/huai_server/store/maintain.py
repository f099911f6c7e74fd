"""Order in the metadata repository of one module: few packs, nothing that nobody needs.

Only composes.  What hurts a fetch that runs never happens: a pack that another took the place of
can be read for an hour more (`replaced`), and every object is always in some pack that can be
found.  A commit goes on while packs are merged, which takes long; the module's lock is held only
for moments before and after that.
"""

from math import inf
from pathlib import Path
from typing import NamedTuple

from huai_schema.errors import FormatError
from huai_schema.program.locking import locked
from huai_server.errors import storage_errors
from huai_server.paths import ModulePlaces
from huai_server.store.block_indices import BlockIndices
from huai_server.store.disk_use import DiskUse, disk_use
from huai_server.store.geometric import roll_up
from huai_server.store.pack_files import PackFile, list_packs
from huai_server.store.repack import Repack
from huai_server.store.replaced import remove_replaced
from huai_server.store.repository import Repository, StoreError


class Plan(NamedTuple):
    """What has to be done."""

    loose: int
    """Objects in files of their own, which are put into a pack."""
    merged: int
    """Packs that become one, that of the loose objects among them."""


class Maintained(NamedTuple):
    """What was done."""

    plan: Plan
    before: DiskUse
    after: DiskUse


def foresee(places: ModulePlaces) -> tuple[Plan, DiskUse]:
    """What `maintain` would do, and what is there now; changes nothing."""
    with storage_errors(places.repository):
        loose = len(Repack(places.repository).loose())
        counts = [pack.objects for pack in list_packs(_pack_folder(places.repository))]
        counts += [loose] if loose else []
        return Plan(loose, roll_up(sorted(counts))), disk_use(places)


def maintain(places: ModulePlaces, *, now: float, wait: float = 0) -> Maintained:
    """Do it; `LockedError` if a commit or another `maintain` does not end within `wait` seconds.

    `now` in seconds since the epoch.
    """
    with storage_errors(places.repository), locked(places.maintaining, wait=wait):
        before = disk_use(places)
        try:
            done = _Maintenance(places, now, wait).run()
        except FormatError as error:
            raise StoreError(
                f"{places.repository}: {error.message}",
                hint="`huai-server check` names what is damaged",
            ) from error
        return Maintained(done, before, disk_use(places))


class _Maintenance:
    def __init__(self, places: ModulePlaces, now: float, wait: float) -> None:
        self._places = places
        self._now = now
        self._wait = wait
        self._repack = Repack(places.repository)

    def run(self) -> Plan:
        with locked(self._places.lock, wait=self._wait):
            repository = Repository(self._places.repository)
            repository.remove_unfinished()
            self._expire(repository)
            loose = self._repack.loose()
            if loose:
                self._repack.pack_loose(loose)
            packs = list_packs(_pack_folder(self._places.repository))
        return Plan(len(loose), self._merge(packs))

    def _expire(self, repository: Repository) -> None:
        """Remove what was kept for a while, and no longer."""
        remove_replaced(repository.pack_folder, self._now)
        head = repository.head()
        if head is not None:
            _, snapshot = repository.snapshot(head)
            BlockIndices(repository.path).prune(snapshot, self._now)

    def _merge(self, packs: list[PackFile]) -> int:
        split = roll_up([pack.objects for pack in packs])
        if split == 0:
            return 0
        new = self._repack.merge(packs[:split], packs[split:])
        with locked(self._places.lock, wait=inf):  # what was made is not thrown away
            self._repack.take_place(new, packs[:split], self._now)
        return split


def _pack_folder(repository: Path) -> Path:
    return repository / "objects" / "pack"
