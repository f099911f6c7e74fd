"""Turns the differences between a tree and a snapshot into an ordered list of operations.

Pure.  The input is one `Candidate` for each path that may differ; the engine does the work for each
of them.  Volatile files (heartbeats, trace files) come last in their stage, and are published as
they arrive.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from huai_client.diff.candidate import Candidate, Move, Remove, TreeDiff
from huai_client.diff.files import joined, paths, within, without
from huai_client.diff.table import CandidateTable
from huai_client.plan.operations import Plan, Stage
from huai_native import _native
from huai_schema.codec.publish_rules import STAGES
from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import RelPath, parent, path_order

StagesOf: TypeAlias = Callable[[Sequence[tuple[RelPath, bool]]], Sequence[int]]
"""Returns the stages of files and symlinks, as indices into `STAGES`.

The argument has paths of the wanted snapshot, and True for symlinks."""


def make_plan(candidates: Iterable[Candidate], moves: Iterable[Move], stages_of: StagesOf) -> Plan:
    """Return the ordered operations that make all `candidates` as expected, after `moves`."""
    planned = CandidateTable.of(candidates).engine.plan()
    stages = planned.in_stages(len(STAGES), bytes(stages_of(planned)))
    return Plan(
        clear=planned.clear,
        make=planned.make,
        moves=sorted(moves, key=lambda move: path_order(move.new)),
        stages=[
            Stage(name, fetches, [*links], [*symlinks], attributes)
            for name, (fetches, links, symlinks, attributes) in zip(STAGES, stages, strict=True)
        ],
        removals=planned.removals,
        directories=planned.directories,
    )


def changed_directories(plan: Plan) -> set[RelPath]:
    """Return directories in which names change, and moved ones: their times are set at the end."""
    paths = _parents(plan.clear) | _parents(plan.removals)
    paths |= {parent(path) for path in plan.make if path}
    for move in plan.moves:
        paths |= {parent(move.old), parent(move.new), move.new}
    for stage in plan.stages:
        for leaves in (stage.fetches, stage.links, stage.symlinks):
            paths |= _parents(leaves)
    return paths


def _parents(items: Sequence[Remove | File | Symlink]) -> set[RelPath]:
    if isinstance(items, _native.Rows):
        return {RelPath(path) for path in items.parents()}
    return {parent(item.path) for item in items}


def with_directories(plan: Plan, directories: Sequence[Directory]) -> Plan:
    """Return the plan with the final attributes of `directories`."""
    if not directories:
        return plan
    final = {directory.path: directory for directory in (*directories, *plan.directories)}
    ordered = sorted(final.values(), key=lambda entry: path_order(entry.path), reverse=True)
    return replace(plan, directories=ordered)


def volatile_fetches(
    plan: Plan, find_volatile: Callable[[Sequence[File]], Sequence[File]]
) -> frozenset[RelPath]:
    """Return the volatile files that `plan` fetches, without those that have hardlinks."""
    led = {file.link for stage in plan.stages for file in stage.links}
    return frozenset(paths(find_volatile(plan.fetches))) - led


def replace_volatile(
    plan: Plan,
    volatile: Collection[RelPath],
    newer: Mapping[RelPath, File],
    unchanged: Collection[RelPath],
) -> Plan:
    """Return the plan without the `unchanged` volatile files, and the others last, as arrived."""
    if not volatile:
        return plan

    def stage_as_arrived(stage: Stage) -> Stage:
        ordinary = without(stage.fetches, volatile)
        last = without(within(stage.fetches, volatile), unchanged)
        return replace(
            stage, fetches=joined(ordinary, [newer.get(each.path, each) for each in last])
        )

    return replace(plan, stages=[stage_as_arrived(stage) for stage in plan.stages])


def split_shared_inodes(diff: TreeDiff, *, may_share: bool) -> TreeDiff:
    """Return the comparison, with "link" among the differences of files that need their own inode.

    `may_share`: files of equal content share an inode until their attributes differ.  Without it
    only an interrupted run shares inodes, and all names of such an inode are candidates.  If the
    candidates of `diff` are a table, that is changed as well.
    """
    table = CandidateTable.of(diff.candidates)
    shared: dict[tuple[int, int], list[Candidate]] = defaultdict(list)
    for name in table.engine.shared():
        shared[name.inode].append(name)
    table.engine.part(
        {
            path
            for names in shared.values()
            for path in (_changing(names) if may_share else _other_leaders(names))
        }
    )
    return diff._replace(candidates=table)


def accept_shared_inodes(diff: TreeDiff) -> TreeDiff:
    """Return the comparison without files whose only difference is a shared inode.

    For `duplicates = "hardlink"`, after a comparison of the whole tree.  Where a change of one name
    would change the inode, none of its names is left out.
    """
    table = CandidateTable.of(diff.candidates)
    inodes: dict[tuple[int, int], list[Candidate]] = defaultdict(list)
    for entry in table.engine.shared():
        inodes[entry.inode].append(entry)
    shared = [
        name for names in inodes.values() if all(map(_only_shares_inode, names)) for name in names
    ]
    sizes = {entry.have.size for entry in shared if isinstance(entry.have, File)}
    right = {entry.candidate.path for entry in table.sources(sizes) if entry.right}
    accepted = right.intersection(entry.path for entry in shared)
    if not accepted:
        return diff
    return diff._replace(candidates=[entry for entry in table if entry.path not in accepted])


def _only_shares_inode(candidate: Candidate) -> bool:
    entry = candidate.expected
    return isinstance(entry, File) and entry.link is None and candidate.differing == {"link"}


def _other_leaders(names: list[Candidate]) -> Iterator[RelPath]:
    """Yield the leaders of all groups but the first: one group keeps the shared inode."""
    groups = dict.fromkeys(
        each.expected.link or each.path
        for each in sorted(names, key=lambda each: path_order(each.path))
        if isinstance(each.expected, File)
    )
    yield from list(groups)[1:]


def _changing(names: list[Candidate]) -> Iterator[RelPath]:
    """Yield files that would change an inode with names outside of their own hardlink group."""
    for candidate in names:
        entry = candidate.expected
        if isinstance(entry, File) and entry.link is None and candidate.differing:
            group_size = sum(_belongs(name, candidate.path) for name in names)
            if group_size < candidate.links:
                yield candidate.path


def _belongs(name: Candidate, leader: RelPath) -> bool:
    """Return True if `name` is deleted, or in the hardlink group of `leader`."""
    entry = name.expected
    return entry is None or (isinstance(entry, File) and leader in (entry.path, entry.link))
