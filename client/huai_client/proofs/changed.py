"""The indices and pointers of package repositories that a plan would publish.

Pure.  Rule to keep: what the upstream says of its own layout does not count here (`order` is made
without its rules), or it could name a pointer payload, and nobody would prove it.
"""

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from huai_client.diff.files import paths
from huai_client.plan.operations import PAYLOAD, POINTERS, Plan
from huai_client.plan.order.order import PackageRepository, PublishOrder
from huai_schema.entries import Entry, File, Symlink
from huai_schema.paths import RelPath, parent

_STEP = 20_000
"""Paths that are looked at together: values of Python take memory."""


class Changed(NamedTuple):
    """One repository in which pointers change."""

    repository: PackageRepository
    entries: dict[RelPath, File | Symlink]
    """The indices and pointers that are written."""
    pointers: set[RelPath]
    """Those of `entries` that are pointers."""
    removed: set[RelPath]
    """Pointers that are deleted."""

    @property
    def folders(self) -> set[RelPath]:
        """The directories in which pointers change."""
        return {parent(path) for path in self.pointers | self.removed}


def find_changed(plan: Plan, order: PublishOrder, wanted: Container[str]) -> list[Changed]:
    """The repositories of the `wanted` profiles in which `plan` changes pointers.

    Volatile files are no part of that.
    """
    found: dict[RelPath, Changed] = {}

    def repository_of(path: RelPath, *, symlink: bool) -> Changed | None:
        around = order.placement_of(path, symlink=symlink).repository
        if around is None or around.profile not in wanted or order.is_volatile(path):
            return None
        return found.setdefault(around.top, Changed(around, {}, set(), set()))

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
    return [each for each in found.values() if each.pointers or each.removed]


def _written(plan: Plan, order: PublishOrder) -> Iterator[tuple[RelPath, File | Symlink, int]]:
    """What is written and is no payload: path, entry and stage."""
    for stage in plan.stages:
        for files in (stage.fetches, stage.links):
            yield from _no_payload(files, order, symlink=False)
        yield from _no_payload(stage.symlinks, order, symlink=True)


def _no_payload(
    entries: Sequence[Entry], order: PublishOrder, *, symlink: bool
) -> Iterator[tuple[RelPath, File | Symlink, int]]:
    for begin in range(0, len(entries), _STEP):
        some = entries[begin : begin + _STEP]
        names = [each.path for each in some] if symlink else [*paths(some)]
        stages = order.stages_of([(path, symlink) for path in names])
        for place, stage in enumerate(stages):
            if stage != PAYLOAD:
                yield names[place], some[place], stage  # type: ignore[misc]
