"""Turns the differences between a tree and a snapshot into an ordered list of operations.

Pure.  The input is one `Candidate` for each path that may differ; the engine does the work for each
of them.  Volatile files (heartbeats, trace files) come last in their stage, and are published as
they arrive.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from huai_client.diff.candidate import Candidate, Move, Remove
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


def make_plan(
    candidates: Iterable[Candidate],
    moves: Iterable[Move],
    stages_of: StagesOf,
) -> Plan:
    """Return the operations for `candidates`."""
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
    """Return directories in which the plan changes names: their times are set at the end."""
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
    """Return the plan with the arrived files (`newer`), and without the `unchanged` ones."""
    if not volatile:
        return plan

    def stage_as_arrived(stage: Stage) -> Stage:
        ordinary = without(stage.fetches, volatile)
        last = without(within(stage.fetches, volatile), unchanged)
        return replace(
            stage, fetches=joined(ordinary, [newer.get(each.path, each) for each in last])
        )

    return replace(plan, stages=[stage_as_arrived(stage) for stage in plan.stages])
