"""Volatile files in a plan: heartbeats and trace files, which change without a commit.

Pure.  Rule: they come last in their stage.  If another file arrived than the metadata describe, the
plan publishes that one, with its own size and time; if none arrived, the local file stays.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from huai_client.diff.files import joined, paths, within, without
from huai_client.plan.operations import Plan, Stage
from huai_schema.entries import File
from huai_schema.paths import RelPath


def volatile_fetches(
    plan: Plan, find_volatile: Callable[[Sequence[File]], Sequence[File]]
) -> frozenset[RelPath]:
    """The volatile files that `plan` fetches, without those that have hardlinks."""
    led = {file.link for stage in plan.stages for file in stage.links}
    return frozenset(paths(find_volatile(plan.fetches))) - led


def as_arrived(
    plan: Plan,
    volatile: Collection[RelPath],
    newer: Mapping[RelPath, File],
    kept: Collection[RelPath],
) -> Plan:
    """The plan with the files that arrived (`newer`) in place of those listed, without `kept`."""
    if not volatile:
        return plan

    def stage_as_arrived(stage: Stage) -> Stage:
        others = without(stage.fetches, volatile)
        last = without(within(stage.fetches, volatile), kept)
        return replace(stage, fetches=joined(others, [newer.get(each.path, each) for each in last]))

    return replace(plan, stages=[stage_as_arrived(stage) for stage in plan.stages])
