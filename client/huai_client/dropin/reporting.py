"""A sync that talks like rsync: names while it goes on, figures at its end.

Standard output is rsync's; warnings and errors go to standard error, as with any sync.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from huai_client.dropin.call import Manner
from huai_client.dropin.figures import Figures, Kinds
from huai_client.dropin.step import Step
from huai_client.state import HELD
from huai_client.talking.talk import Talk
from huai_schema.entries import Directory, File, Symlink

if TYPE_CHECKING:
    from huai_client.dropin.step import Lines
    from huai_client.results import Prepared, SyncResult
    from huai_schema.paths import RelPath


@dataclass(slots=True)
class _Progress:
    """What changes while a run goes on."""

    figures: Figures = field(default_factory=Figures)
    lines: "Lines" = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    begun: bool = False
    """The heading is printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RsyncTalk(Talk):
    """As rsync would tell it."""

    manner: Manner
    dry_run: bool
    checked: Callable[["Prepared"], None]
    """Called with each plan before anything is said or done; may raise."""
    progress: _Progress = field(default_factory=_Progress)

    def result(self, text: str) -> None:
        """What huai's own commands would print."""

    def remark(self, text: str) -> None:
        """What rsync has no word for."""

    def event(self, kind: str, **_values: object) -> None:
        """Only what makes a good run one that did nothing has to be said."""
        if kind == "held":
            self.complaint(f"{self.module}: {HELD}")

    def totals(self, received: int, total: int) -> None:
        """A good run has ended."""
        self.progress.figures.received = received
        self.progress.figures.total = total

    def planned(self, prepared: "Prepared") -> None:
        """Get ready to tell; a dry run is told at once."""
        self.checked(prepared)
        self.heading()
        figures = self.progress.figures
        figures.total = prepared.extent.bytes
        if self.dry_run:
            _count(figures, prepared)
        if self.manner.names:
            from huai_client.dropin.names import lines

            found = lines(prepared.plan, prepared.survey.candidates, itemize=self.manner.itemize)
            self.progress.lines = found
            for line in found.values() if self.dry_run else ():
                _write(line)

    def step(self, kind: str, path: "RelPath") -> None:
        """Say what rsync would of a step that was done."""
        line = self.progress.lines.pop(Step(kind, path), b"")
        if line:
            _write(line)

    def ended(self, result: "SyncResult") -> None:
        """Take the figures."""
        figures = self.progress.figures
        figures.total = result.total_bytes
        if result.prepared and result.report:
            _count(figures, result.prepared)
        if result.outcome:
            figures.received = result.outcome.bytes_received

    def heading(self) -> None:
        """The line with which rsync begins, once."""
        if not self.progress.begun and not self.manner.quiet and self.manner.verbosity:
            _write(b"receiving incremental file list")
        self.progress.begun = True

    def close(self, entries: Kinds | None) -> None:
        """Print the figures."""
        self.heading()
        figures = self.progress.figures
        figures.entries = entries
        seconds = time.monotonic() - self.progress.began
        for line in figures.lines(self.manner, seconds=seconds, dry_run=self.dry_run):
            _write(line.encode())
        sys.stdout.flush()


def _count(figures: Figures, prepared: "Prepared") -> None:
    """What a plan comes to; new content in an old file counts as transferred, as with rsync."""
    plan = prepared.plan
    created = Counter(
        type(each.wanted)
        for each in prepared.survey.candidates
        if each.wanted is not None and type(each.have) is not type(each.wanted)
    )
    figures.created = Kinds(created[File], created[Directory], created[Symlink])
    fetches = [file for stage in plan.stages for file in stage.fetches]
    removals = [item.directory for item in (*plan.clear, *plan.removals)]
    figures.transferred = len(fetches)
    figures.transferred_bytes = sum(file.size for file in fetches)
    figures.deleted = Kinds(removals.count(False), removals.count(True))


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
