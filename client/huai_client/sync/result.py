"""The result of a sync, and the observer of one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from huai_client.plan.prepared import PreparedPlan
from huai_client.proofs.proved import Proved
from huai_client.publish.report import Report
from huai_client.transfer import Listener, Outcome
from huai_client.transfer.local import Reused
from huai_schema.errors import ExitCode, worst_exit_code
from huai_schema.paths import RelPath


@dataclass(frozen=True, slots=True)
class SyncResult:
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

    @property
    def exit_code(self) -> ExitCode:
        """The worst exit code of the run's failures."""
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
