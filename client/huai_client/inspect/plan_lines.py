"""A plan as rows of text: operation, path and detail."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from huai_client.diff.candidate import Remove
from huai_client.plan.operations import Stage
from huai_client.plan.prepared import PreparedPlan
from huai_program.humanize import counted, moment
from huai_schema.paths import RelPath, join, show


class PlanLine(NamedTuple):
    """An operation on a path."""

    operation: str
    path: RelPath
    detail: str
    """More about the operation, such as the source."""
    volatile: bool = False
    """True for a file that changes without a commit, and is published as it arrives."""


def plan_lines(prepared: PreparedPlan) -> Iterator[PlanLine]:
    """Yield each operation in order."""
    plan = prepared.plan
    for item in plan.clear:
        yield PlanLine("clear", item.path, _kind(item))
    for path in plan.make:
        yield PlanLine("mkdir", path, "")
    for move in plan.moves:
        yield PlanLine("move", move.new, f"from {show(move.old)}")
    for stage in plan.stages:
        yield from _stage_lines(stage, prepared)
    for item in plan.removals:
        yield PlanLine("delete", item.path, _kind(item))
    new = set(plan.make)
    for directory in plan.directories:
        if directory.path not in new:
            yield PlanLine("directory", directory.path, "")


def _stage_lines(stage: Stage, prepared: PreparedPlan) -> Iterator[PlanLine]:
    for file in stage.fetches:
        reuse = prepared.plan.reuses.get(file.path)
        source = f"from {show(join(os.fsencode(reuse.tree), reuse.source))}, " if reuse else ""
        operation = "reuse" if reuse else "fetch"
        volatile = file.path in prepared.volatile
        mark = ", volatile" if volatile else ""
        detail = f"{source}{counted(file.size, 'byte')}, {stage.name}{mark}"
        yield PlanLine(operation, file.path, detail, volatile)
    for file in stage.links:
        yield PlanLine("link", file.path, f"to {show(file.link or b'')}")
    for symlink in stage.symlinks:
        yield PlanLine("symlink", symlink.path, f"to {show(symlink.target)}")
    for entry in stage.attributes:
        yield PlanLine("attributes", entry.path, stage.name)


def delayed_lines(prepared: PreparedPlan, patience: int) -> Iterator[tuple[RelPath, str]]:
    """Yield the delayed deletions of a plan, with the time of each; `patience` in seconds."""
    for deletion in prepared.waiting:
        if deletion.since:
            yield deletion.path, moment(deletion.since + patience)
        else:
            yield deletion.path, f"{patience} s after the sync"


def _kind(item: Remove) -> str:
    return "directory" if item.directory else "file"
