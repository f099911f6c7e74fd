"""The totals of a plan, stage by stage, and an estimate of its time.

Only composes the plan and the history of former runs.  Rule: the estimate uses the last runs that
fetched content and ended well, by bytes per second and by files per second; the longer time counts.
Without such a run the time is unknown.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from huai_client.plan.operations import Plan, Stage
from huai_client.plan.prepared import PreparedPlan
from huai_client.state import history
from huai_client.state.run_record import RunRecord
from huai_program.humanize import counted, format_span

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
        """Add up a stage of `plan`."""
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
        """Estimate a plan; `runs` is the path of the module's history."""
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
    """Return the seconds for so many files and bytes, or None; `runs` are newest first."""
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
