"""The result of a sync with its failures, and the observer of one."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec import Struct

from huai_client.plan.prepared import PreparedPlan
from huai_client.proofs.proved import Proved
from huai_client.publish.report import Report
from huai_client.transfer.fetch import Outcome
from huai_client.transfer.listener import Listener
from huai_client.transfer.local import Reused
from huai_program.humanize import counted
from huai_schema.errors import ExitCode, worst_exit_code
from huai_schema.paths import RelPath, show


class SyncResult(Struct, frozen=True):
    """The result of a run."""

    commit: str
    serial: int
    committed: int
    """The time of the commit, seconds since the epoch."""
    total_bytes: int
    """The size of all files that the module's filter selects."""
    prepared: PreparedPlan | None = None
    """The last plan; None if there was nothing new."""
    report: Report | None = None
    outcome: Outcome | None = None
    reused: Reused | None = None
    """The content from this machine; None if no content was staged."""
    first_seen: int = 0
    """The time of the first fetch of the commit, seconds since the epoch; 0: now."""
    plans: int = 1
    """The number of plans of the run: more than one if the upstream changed meanwhile."""
    valid_until: int = 0
    """The end of the signature's validity, seconds since the epoch; 0: not signed."""
    news: str = ""
    """News about the upstream's keys."""
    unproved: tuple[Proved, ...] = ()
    """The repositories whose pointers a proof refused."""
    nothing_at: tuple[str, ...] = ()
    """The content URLs that have no file of the newest commit: they serve another tree."""
    listed: bool = False
    """True if the upstream does not run huai, and was listed."""

    @property
    def exit_code(self) -> ExitCode:
        """The worst exit code of the run's failures; `OK` if nothing failed."""
        outcome = self.outcome or Outcome((), [], [], 0)
        failures = (
            (ExitCode.MISMATCH, outcome.mismatched),
            (ExitCode.UNPROVED, self.unproved),
            (ExitCode.PARTIAL, outcome.refused or self.nothing_at),
            (ExitCode.PARTIAL, self.report and self.report.problems),
            (ExitCode.TIMEOUT, outcome.late),
            (ExitCode.VANISHED, outcome.missing),
        )
        return worst_exit_code(code for code, cause in failures if cause)


class Observer(NamedTuple):
    """The callbacks for the progress of a run."""

    listener: Listener
    planned: Callable[[PreparedPlan], None]
    """A callback for each plan, before anything is transferred or changed."""
    step: Callable[[str, RelPath], None] | None
    """A callback after each change to the tree, if any."""
    proof_line: Callable[[str], None] = lambda _: None
    """A callback for each line that the program of a proof prints."""
    proved: Callable[[Proved], None] = lambda _: None
    """A callback after each proof."""


_MOST = 20
"""The number of failures of a kind that are listed."""
_LASTING_MISMATCH = (
    "the upstream changed the content without a commit; if its next commit does not fix this, run "
    "huai-server scrub --full NAME there, which finds such files"
)


_LASTING_CHANGE = "the upstream is changing; the next sync asks it for these files again"


def failures(result: SyncResult, most: int = _MOST) -> Iterator[str]:
    """Yield a line for each failed path, at most `most` of a kind and then their number.

    Failures that the administrator can repair come first.
    """
    for proved in result.unproved:
        yield proved.refused()
    if result.nothing_at:
        count = len(result.outcome.missing) if result.outcome else 0
        urls = ", ".join(result.nothing_at)
        yield f"check the content URL: {urls} has none of the {counted(count, 'file')}"
    if result.outcome:
        hint = _LASTING_CHANGE if result.listed else _LASTING_MISMATCH
        yield from _missing_files(result.outcome, hint, most)
    if result.report:
        yield from _failed_changes(result.report, most)


def _missing_files(outcome: Outcome, mismatch_hint: str, most: int) -> Iterator[str]:
    """Yield lines about files that are not here, at most `most` of each reason."""
    yield from _capped([(file.path, "vanished upstream") for file in outcome.missing], most)
    mismatched = "the content does not match the metadata"
    yield from _capped([(file.path, mismatched) for file in outcome.mismatched], most)
    if outcome.mismatched:
        yield mismatch_hint
    yield from _capped([(each.file.path, each.reason) for each in outcome.refused], most)
    if late := len(outcome.late):
        yield (
            f"time is up: {counted(late, 'file is', 'files are')} still to come; "
            "the next run continues from here"
        )


def _failed_changes(report: Report, most: int) -> Iterator[str]:
    """Yield lines about changes that failed, waited or were left out."""
    yield from _capped([(each.path, each.reason) for each in report.problems], most)
    if report.withheld:
        yield (
            f"{counted(report.withheld, 'more path waits', 'more paths wait')} for failed ones, so "
            "that no index names a missing file; the next sync tries them again"
        )
    kept_reason = "kept, because it contains files that are in no snapshot"
    yield from _capped([(path, kept_reason) for path in report.extraneous], most)
    for name in sorted(report.unknown_owners):
        yield f"owner {show(name)} is unknown on this machine; those entries keep their owner"


def _capped(pairs: list[tuple[RelPath, str]], most: int) -> Iterator[str]:
    """Yield a line for each of the first `most` paths, and the number of the others."""
    for path, reason in pairs[:most]:
        yield f"{show(path)}: {reason}"
    if len(pairs) > most:
        yield f"and {len(pairs) - most:,} more like the last one"
