"""Output like rsync's: names while a sync runs, statistics at its end.

Standard output is rsync's; warnings and errors go to standard error, as with any sync, and with
`--quiet` only if the run did not end well.  `--log-file` hears everything.
"""

import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
    from huai_client.plan.prepared import Prepared
    from huai_client.sync.result import SyncResult
    from huai_schema.paths import RelPath


@dataclass(slots=True)
class _Progress:
    """What changes while a run goes on."""

    figures: Stats = field(default_factory=Stats)
    items: "Items" = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    """Messages that a quiet run prints at its end, if it fails."""
    began: float = field(default_factory=time.monotonic)
    begun: bool = False
    """The heading is printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RsyncConsole(Console):
    """Prints as rsync does."""

    style: OutputStyle
    dry_run: bool
    file: RsyncLog | None = None
    """That of `--log-file`."""
    progress: _Progress = field(default_factory=_Progress)

    def result(self, text: str) -> None:
        """Nothing: rsync prints no results of huai's commands."""

    def info(self, text: str) -> None:
        """Nothing: rsync has no such message."""

    def event(self, kind: str, **_values: object) -> None:
        """Only `held` is printed: the run ends well, and did nothing."""
        if kind == "held":
            self._say(f"{self.module}: {HELD}")

    def error(self, text: str) -> None:
        """Something that went wrong, or may have; a quiet run that ends well was fine."""
        if self.style.quiet:
            self.progress.complaints.append(text)
        else:
            self._say(text)

    def advice(self, text: str) -> None:
        """A warning; rsync's own --quiet decides who sees it."""
        self.error(f"{self.module}: {text}")

    def concluded(self, code: ExitCode) -> None:
        """The run has ended; a quiet one prints its messages if it failed."""
        if code != ExitCode.OK:
            for text in self.progress.complaints:
                self._say(text)
        self.progress.complaints.clear()

    def totals(self, received: int, total: int) -> None:
        """A good run has ended."""
        self.progress.figures.received = received
        self.progress.figures.total = total

    def planned(self, prepared: "Prepared") -> None:
        """Prepare the lines of a plan; a dry run prints them at once."""
        self.heading()
        figures = self.progress.figures
        figures.total = prepared.extent.bytes
        if self.dry_run:
            _count(figures, prepared)
        if self.style.names:
            from huai_client.huai_rsync.itemize import items

            self.progress.items = items(prepared.plan, prepared.diff.candidates)
            for told in self.progress.items.values() if self.dry_run else ():
                self._tell(told)

    def steps(self) -> "Callable[[str, RelPath], None] | None":
        """What prints rsync's lines for a step that was done, where there are any."""
        return self._step if self.style.names else None

    def _step(self, kind: str, path: "RelPath") -> None:
        self._tell(self.progress.items.pop(PlanStep(kind, path), []))

    def ended(self, result: "SyncResult") -> None:
        """Keep the statistics of the result."""
        self.totals(result.outcome.bytes_received if result.outcome else 0, result.total_bytes)
        if result.prepared and result.report:
            _count(self.progress.figures, result.prepared)

    def heading(self) -> None:
        """The lines with which rsync begins, once."""
        if self.progress.begun:
            return
        self.progress.begun = True
        if self.file:
            self.file.write(b"receiving file list")
        if not self.style.quiet and self.style.verbosity:
            _write(b"receiving incremental file list")

    def close(self, entries: Kinds | None) -> None:
        """Print the statistics."""
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

    def _tell(self, told: list[Item]) -> None:
        """Print to standard output and to the log, each in its own format."""
        style = self.style
        for item in told:
            line = Format(style.format).line(item) if style.format else None
            if not style.format and item.deleted and style.deletions:
                line = b"deleting " + item.name
            if line is not None and not style.quiet:
                _write(line)
            if self.file and style.log_format and not self.dry_run:
                line = Format(style.log_format).line(item)
                if line is not None:
                    self.file.write(line)

    def _say(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        if self.file:
            self.file.write(text.encode("utf-8", "backslashreplace"))


def _count(figures: Stats, prepared: "Prepared") -> None:
    """Add up a plan; new content in an old file counts as transferred, as with rsync."""
    plan = prepared.plan
    created = Counter[type]()
    links = set()
    for each in prepared.diff.candidates:
        if each.expected is not None and type(each.have) is not type(each.expected):
            created[type(each.expected)] += 1
        if isinstance(each.have, Symlink):
            links.add(each.path)
    figures.created = Kinds(created[File], created[Directory], created[Symlink])
    fetches = [file for stage in plan.stages for file in stage.fetches]
    removals = (*plan.clear, *plan.removals)
    directories = sum(item.directory for item in removals)
    symlinks = sum(item.path in links for item in removals)
    figures.transferred = len(fetches)
    figures.transferred_bytes = sum(file.size for file in fetches)
    figures.deleted = Kinds(len(removals) - directories - symlinks, directories, symlinks)


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
