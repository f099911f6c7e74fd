"""The result of a sync, and the observer of one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from huai_client.plan.prepared import Prepared
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
    """When the upstream made the commit, seconds since the epoch."""
    total_bytes: int
    """Of all files of the module that its filter selects."""
    prepared: Prepared | None = None
    """None: there was nothing new."""
    report: Report | None = None
    outcome: Outcome | None = None
    reused: Reused | None = None
    """None: no content was staged."""
    seen: int = 0
    """When the commit was first here, seconds since the epoch; 0: now."""
    plans: int = 1
    """How many plans the run made: more than one if the upstream changed meanwhile."""
    valid_until: int = 0
    """Until when the commit's signature holds, seconds since the epoch; 0: it has none."""
    news: str = ""
    """What is to be told of the upstream's keys."""
    unproved: tuple[Proved, ...] = ()
    """Repositories whose pointers a proof refused."""
    nothing_at: tuple[str, ...] = ()
    """Content URLs that have no file of the newest commit: they serve another tree."""

    @property
    def exit_code(self) -> ExitCode:
        """The worst of what the run met."""
        outcome = self.outcome or Outcome((), [], [], 0)
        met = (
            (ExitCode.MISMATCH, outcome.mismatched),
            (ExitCode.UNPROVED, self.unproved),
            (ExitCode.PARTIAL, outcome.refused or self.nothing_at),
            (ExitCode.PARTIAL, self.report and self.report.problems),
            (ExitCode.TIMEOUT, outcome.late),
            (ExitCode.VANISHED, outcome.missing),
        )
        return worst_exit_code(code for code, cause in met if cause)


class Observer(NamedTuple):
    """Receives the progress of a run."""

    listener: Listener
    planned: Callable[[Prepared], None]
    """Called with each plan, before anything is transferred or changed."""
    step: Callable[[str, RelPath], None] | None
    """Called after each change to the tree; None: nobody listens."""
    heard: Callable[[str], None] = lambda _: None
    """Called with each line that the program of a proof prints."""
    proved: Callable[[Proved], None] = lambda _: None
    """Called when a proof has ended."""
