"""Output like rsync's: names while a sync runs, statistics at its end.

Standard output is rsync's; warnings and errors go to standard error, as with any sync, and with
`--quiet` only if the run fails.  The file of `--log-file` gets everything.
"""

import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from huai_client.cli.console import Console
from huai_client.huai_rsync.log import Format, Item, PlanStep, RsyncLog
from huai_client.huai_rsync.request import OutputStyle
from huai_client.huai_rsync.stats import Kinds, Stats
from huai_client.state.state import HELD
from huai_schema.entries import Directory, File, Symlink
from huai_schema.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from huai_client.huai_rsync.log import Items
    from huai_client.plan.prepared import PreparedPlan
    from huai_client.sync.result import SyncResult
    from huai_schema.paths import RelPath


@dataclass(slots=True)
class _Progress:
    figures: Stats = field(default_factory=Stats)
    items: "Items" = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    """Messages that a quiet run prints at its end, if it fails."""
    began: float = field(default_factory=time.monotonic)
    begun: bool = False
    """True if the heading is printed."""


class RsyncConsole(Console, frozen=True, kw_only=True):
    """A console that prints as rsync does."""

    style: OutputStyle
    dry_run: bool
    file: RsyncLog | None = None
    """The file of `--log-file`."""
    progress: _Progress = msgspec.field(default_factory=_Progress)

    def result(self, text: str) -> None:
        """Ignore results: rsync does not print those of huai's commands."""

    def info(self, text: str) -> None:
        """Ignore information: rsync does not have such messages."""

    def event(self, kind: str, **_values: object) -> None:
        """Print `held` only: that run ends well without doing anything."""
        if kind == "held":
            self._print_error(f"{self.module}: {HELD}")

    def error(self, text: str) -> None:
        """Print an error or a warning; a quiet run prints them only if it fails."""
        if self.style.quiet:
            self.progress.complaints.append(text)
        else:
            self._print_error(text)

    def advice(self, text: str) -> None:
        """Print a warning, according to rsync's --quiet."""
        self.error(f"{self.module}: {text}")

    def concluded(self, code: ExitCode) -> None:
        """End the run; a quiet one prints its messages if it failed."""
        if code != ExitCode.OK:
            for text in self.progress.complaints:
                self._print_error(text)
        self.progress.complaints.clear()

    def totals(self, received: int, total: int) -> None:
        """Keep the totals of a successful run."""
        self.progress.figures.received = received
        self.progress.figures.total = total

    def planned(self, prepared: "PreparedPlan") -> None:
        """Print the heading, and prepare the lines of a plan; a dry run prints them at once."""
        self.heading()
        figures = self.progress.figures
        figures.total = prepared.extent.bytes
        if self.dry_run:
            _count(figures, prepared)
        if self.style.names:
            from huai_client.huai_rsync.itemize import items

            self.progress.items = items(prepared.plan, prepared.diff.candidates)
            for items_of_step in self.progress.items.values() if self.dry_run else ():
                self._print_items(items_of_step)

    def steps(self) -> "Callable[[str, RelPath], None] | None":
        """Return a function that prints rsync's lines for a step; None if they are hidden."""
        return self._step if self.style.names else None

    def _step(self, kind: str, path: "RelPath") -> None:
        """Print the lines of a step, once."""
        self._print_items(self.progress.items.pop(PlanStep(kind, path), []))

    def ended(self, result: "SyncResult") -> None:
        """Keep the statistics of the result."""
        self.totals(result.outcome.bytes_received if result.outcome else 0, result.total_bytes)
        if result.prepared and result.report:
            _count(self.progress.figures, result.prepared)

    def heading(self) -> None:
        """Print the lines with which rsync begins, once."""
        if self.progress.begun:
            return
        self.progress.begun = True
        if self.file:
            self.file.write(b"receiving file list")
        if not self.style.quiet and self.style.verbosity:
            _write(b"receiving incremental file list")

    def close(self, entries: Kinds | None) -> None:
        """Print and log the statistics; `entries` are the numbers of entries, if known."""
        self.heading()
        figures, style = self.progress.figures, self.style
        figures.entries = entries
        seconds = time.monotonic() - self.progress.began
        if not style.quiet:
            for line in figures.lines(style, seconds=seconds, dry_run=self.dry_run):
                _write(line.encode())
        if self.file:
            for line in figures.log_lines(style, seconds=seconds, dry_run=self.dry_run):
                self.file.write(line.encode())
        sys.stdout.flush()

    def _print_items(self, items: list[Item]) -> None:
        """Print to standard output and to the log, each in its format."""
        style = self.style
        for item in items:
            line = Format(style.format).line(item) if style.format else None
            if not style.format and item.deleted and style.deletions:
                line = b"deleting " + item.name
            if line is not None and not style.quiet:
                _write(line)
            if self.file and style.log_format and not self.dry_run:
                line = Format(style.log_format).line(item)
                if line is not None:
                    self.file.write(line)

    def _print_error(self, text: str) -> None:
        """Print to standard error, and to the log file if there is one."""
        sys.stderr.write(text + "\n")
        if self.file:
            self.file.write(text.encode("utf-8", "backslashreplace"))


def _count(figures: Stats, prepared: "PreparedPlan") -> None:
    """Set `figures` by a plan; new content in an old file counts as transferred, as with rsync."""
    plan = prepared.plan
    new_entries = Counter[type]()
    links = set()
    for candidate in prepared.diff.candidates:
        if candidate.expected is not None and type(candidate.have) is not type(candidate.expected):
            new_entries[type(candidate.expected)] += 1
        if isinstance(candidate.have, Symlink):
            links.add(candidate.path)
    figures.created = Kinds(new_entries[File], new_entries[Directory], new_entries[Symlink])
    fetches = [file for stage in plan.stages for file in stage.fetches]
    removals = (*plan.clear, *plan.removals)
    directories = sum(item.directory for item in removals)
    symlinks = sum(item.path in links for item in removals)
    figures.transferred = len(fetches)
    figures.transferred_bytes = sum(file.size for file in fetches)
    figures.deleted = Kinds(len(removals) - directories - symlinks, directories, symlinks)


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
