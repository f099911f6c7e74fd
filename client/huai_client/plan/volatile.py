"""Volatile files in a plan: heartbeats and trace files, which change without a commit.

Pure.  Rule: they come last in their stage.  If the file that arrived differs from the metadata, the
plan publishes it, with its own size and time; if none arrived, the local file stays.
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
