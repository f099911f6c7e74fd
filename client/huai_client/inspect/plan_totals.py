"""A plan as rows of text, its totals, stage by stage, and an estimate of its time.

Only composes the plan and the history of former runs.  Rule: the estimate uses the last runs that
fetched content and ended well, by bytes per second and by files per second; the longer time counts.
Without such a run the time is unknown.
"""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from huai_client.diff.candidate import Remove
from huai_client.plan.operations import Plan, Stage
from huai_client.plan.prepared import PreparedPlan
from huai_client.state import history
from huai_client.state.history import RunRecord
from huai_program.humanize import counted, format_span, moment
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
    """Yield the lines of a stage's operations."""
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


_RUNS = 10


class StageTotals(NamedTuple):
    """The totals of a stage: counts, and bytes of files."""

    stage: str
    fetches: int
    fetch_bytes: int
    reused: int
    """The number of files whose content is in another local file."""
    reused_bytes: int
    links: int
    symlinks: int
    attributes: int

    @classmethod
    def of(cls, stage: Stage, plan: Plan) -> "StageTotals":
        """Return the totals of a stage of `plan`; files with a local source count as reused."""
        sizes = [file.size for file in stage.fetches if file.path not in plan.reuses]
        every = sum(file.size for file in stage.fetches)
        reused = (len(stage.fetches) - len(sizes), every - sum(sizes))
        counts = (len(stage.links), len(stage.symlinks), len(stage.attributes))
        return cls(stage.name, len(sizes), sum(sizes), *reused, *counts)

    def __str__(self) -> str:
        parts = (
            (
                self.fetches,
                f"{counted(self.fetches, 'file')} to fetch ({counted(self.fetch_bytes, 'byte')})",
            ),
            (
                self.reused,
                f"{self.reused:,} from local files ({counted(self.reused_bytes, 'byte')})",
            ),
            (self.links, counted(self.links, "hardlink")),
            (self.symlinks, counted(self.symlinks, "symlink")),
            (self.attributes, f"{self.attributes:,} to touch"),
        )
        return f"{self.stage}: {', '.join(text for count, text in parts if count)}"


class Forecast(NamedTuple):
    """The totals of a plan, with an estimate of its time."""

    stages: list[StageTotals]
    """The stages with anything to do, in order."""
    seconds: float | None
    """The estimated seconds; None if no earlier run has a rate."""

    @classmethod
    def of(cls, prepared: PreparedPlan, runs: Path) -> "Forecast":
        """Return the forecast for a plan; `runs` is the module's history, which is read."""
        totals = [StageTotals.of(stage, prepared.plan) for stage in prepared.plan.stages]
        summary = prepared.summary
        needed = seconds_needed(history.read(runs), summary.fetches, summary.fetch_bytes)
        return cls([each for each in totals if any(each[1:])], needed)

    def lines(self) -> Iterator[str]:
        """Yield the lines for people."""
        yield from map(str, self.stages)
        if self.stages:
            needed = "unknown" if self.seconds is None else f"about {format_span(self.seconds)}"
            yield f"time: {needed}"

    def values(self) -> dict[str, object]:
        """Return the values for JSON."""
        return {
            "stages": [each._asdict() for each in self.stages],
            "seconds": None if self.seconds is None else round(self.seconds, 1),
        }


def seconds_needed(runs: Iterable[RunRecord], files: int, size: int) -> float | None:
    """Return the seconds for `files` files of `size` bytes in all, by the last good ones of `runs`.

    None without a run to measure by.  `runs` are newest first.
    """
    measured = [
        run
        for run in islice(runs, 10 * _RUNS)
        if run.kind == "sync" and run.succeeded and run.seconds > 0 and run.fetched
    ][:_RUNS]
    if not measured:
        return None
    spent = sum(run.seconds for run in measured)
    by_files = files * spent / sum(run.fetched for run in measured)
    received = sum(run.received for run in measured)
    return max(by_files, size * spent / received) if received else by_files
