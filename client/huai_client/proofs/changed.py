"""The indices and pointers of package repositories that a plan would publish.

Pure.  Rule to keep: the upstream's rules about its layout are ignored here (`order` is made without
them), or it could declare a pointer as payload, which would stay unproved.
"""

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from huai_client.diff.files import paths
from huai_client.plan.operations import PAYLOAD, POINTERS, Plan
from huai_client.plan.order import PackageRepository, PublishOrder
from huai_schema.entries import Entry, File, Symlink
from huai_schema.paths import RelPath, parent

_STEP = 20_000
"""The number of paths to handle at a time: Python values take memory."""


class Changed(NamedTuple):
    """A repository in which pointers change."""

    repository: PackageRepository
    entries: dict[RelPath, File | Symlink]
    """The indices and pointers to write."""
    pointers: set[RelPath]
    """The pointers among `entries`."""
    removed: set[RelPath]
    """The pointers to delete."""

    @property
    def folders(self) -> set[RelPath]:
        """The directories in which pointers change."""
        return {parent(path) for path in self.pointers | self.removed}


def find_changed(plan: Plan, order: PublishOrder, profiles: Container[str]) -> list[Changed]:
    """Return the repositories of some `profiles` in which `plan` changes pointers.

    Volatile files do not count.
    """
    repositories: dict[RelPath, Changed] = {}

    def repository_of(path: RelPath, *, symlink: bool) -> Changed | None:
        around = order.placement_of(path, symlink=symlink).repository
        if around is None or around.profile not in profiles or order.is_volatile(path):
            return None
        return repositories.setdefault(around.top, Changed(around, {}, set(), set()))

    for path, entry, stage in _written(plan, order):
        changed = repository_of(path, symlink=isinstance(entry, Symlink))
        if changed is not None:
            changed.entries[path] = entry
            if stage == POINTERS:
                changed.pointers.add(path)
    for item in (*plan.clear, *plan.removals):
        if not item.directory and order.stage_of(item.path) == POINTERS:
            changed = repository_of(item.path, symlink=False)
            if changed is not None:
                changed.removed.add(item.path)
    return [each for each in repositories.values() if each.pointers or each.removed]


def _written(plan: Plan, order: PublishOrder) -> Iterator[tuple[RelPath, File | Symlink, int]]:
    """Yield path, entry and stage of the indices and pointers to write."""
    for stage in plan.stages:
        for files in (stage.fetches, stage.links):
            yield from _without_payload(files, order, symlink=False)
        yield from _without_payload(stage.symlinks, order, symlink=True)


def _without_payload(
    entries: Sequence[Entry], order: PublishOrder, *, symlink: bool
) -> Iterator[tuple[RelPath, File | Symlink, int]]:
    for begin in range(0, len(entries), _STEP):
        some = entries[begin : begin + _STEP]
        names = [each.path for each in some] if symlink else [*paths(some)]
        stages = order.stages_of([(path, symlink) for path in names])
        for place, stage in enumerate(stages):
            if stage != PAYLOAD:
                yield names[place], some[place], stage  # type: ignore[misc]
