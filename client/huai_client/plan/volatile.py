"""Files that change without a commit, in a plan: heartbeats and trace files.

Pure.  Rule: they come last.  Where another file came than the metadata say, the plan publishes that
one, with its own size and time; where none came that may be published, what is here stays.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from huai_client.plan.operations import Plan, Stage
from huai_schema.entries import File
from huai_schema.paths import RelPath


def volatile_fetches(plan: Plan, is_volatile: Callable[[RelPath], bool]) -> frozenset[RelPath]:
    """The files to fetch that may be other ones by then: not those that have hardlinks."""
    led = {file.link for stage in plan.stages for file in stage.links}
    return frozenset(
        file.path
        for stage in plan.stages
        for file in stage.fetches
        if is_volatile(file.path) and file.path not in led
    )


def as_arrived(
    plan: Plan,
    volatile: Collection[RelPath],
    newer: Mapping[RelPath, File],
    kept: Collection[RelPath],
) -> Plan:
    """The plan with what arrived in place of what was listed, without what is `kept`."""
    if not volatile:
        return plan

    def stage_as_arrived(stage: Stage) -> Stage:
        fetches = [newer.get(each.path, each) for each in stage.fetches if each.path not in kept]
        return replace(stage, fetches=sorted(fetches, key=lambda each: each.path in volatile))

    return replace(plan, stages=[stage_as_arrived(stage) for stage in plan.stages])
