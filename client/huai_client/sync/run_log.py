"""Writes a run to the history, however it ends.

It encloses the work of a run, under the lock.  Imports little, because each poll uses it.
"""

import os
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from huai_client.state.history import Kind, RunRecord, append, last
from huai_client.state.last_run import save
from huai_client.state.paths import ModulePlaces
from huai_program.humanize import counted
from huai_schema.errors import ExitCode, HuaiError

if TYPE_CHECKING:
    from huai_client.plan.prepared import PreparedPlan
    from huai_client.state.state import State
    from huai_client.sync.result import SyncResult

_CRASHED = 1
"""The exit code of Python after an unexpected error."""


class RunLog(AbstractContextManager["RunLog"]):
    """A record of a run, which is written when the `with` block ends."""

    def __init__(self, places: ModulePlaces, kind: Kind) -> None:
        """Write to the files in `places`, the module's."""
        self._history = places.history
        self._last = places.last
        self._began = time.time()
        self.record = RunRecord(kind=kind, time=int(self._began), process=os.getpid())

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Append the run to the history, unless idle; save it as the last one, unless `verify`."""
        if error is not None:
            self.failed(error)
        self._note(seconds=round(max(0.0, time.time() - self._began), 3))
        if not self._is_idle():
            append(self._history, self.record)
        if self.record.kind != "verify":
            save(self._last, self.record, int(time.time()))

    def failed(self, error: BaseException) -> None:
        """Note the error that ended the run."""
        code, reason = _ended_by(error)
        self._note(code=code, reason=reason)

    def set_kind(self, kind: Kind) -> None:
        """Change the kind of the run."""
        self._note(kind=kind)

    def started(self, state: "State") -> None:
        """Note the state at the beginning of the run."""
        self._note(before=state.applied or "", commit=state.applied or "", serial=state.serial)

    def planned(self, prepared: "PreparedPlan") -> None:
        """Note the plan, and write a line now, so that a killed run is recorded."""
        self._note(commit=prepared.commit.id, serial=prepared.commit.info.serial)
        if not prepared.summary.nothing:
            append(self._history, replace(self.record, ended=False))

    def up_to_date(self, state: "State") -> None:
        """Note that there was nothing to do; recorded only if the run before failed."""
        self._note(total_bytes=state.total_bytes, changed=False)

    def ended(self, result: "SyncResult", failures: Iterable[str]) -> None:
        """Note the result; `failures` has a line for each failed path."""
        counts = result.report.counts._asdict() if result.report else {}
        self._note(
            code=int(result.exit_code),
            reason=_reason(result.exit_code, list(failures)),
            commit=result.commit,
            serial=result.serial,
            total_bytes=result.total_bytes,
            fetched=result.prepared.summary.fetches if result.prepared else 0,
            received=result.outcome.bytes_received if result.outcome else 0,
            done={name: count for name, count in counts.items() if count},
            changed=result.prepared is not None and not result.prepared.summary.nothing,
        )

    def verified(self, differences: int, *, content: bool) -> None:
        """Note a comparison of the tree with the applied commit; `content`: files were read."""
        code = ExitCode.DIFFERS if differences else ExitCode.OK
        reason = counted(differences, "path differs", "paths differ") if differences else ""
        self._note(
            code=int(code), reason=reason, differences=differences, content=content, changed=False
        )

    def unrepaired(self, count: int) -> ExitCode:
        """Note that `count` paths could not be read or repaired; return `DIFFERS`."""
        reason = counted(count, "path cannot be read", "paths cannot be read")
        self._note(code=int(ExitCode.DIFFERS), reason=reason, differences=count)
        return ExitCode.DIFFERS

    def uncompared(self, count: int) -> ExitCode:
        """Note that an engine could not compare `count` parts; return `DIFFERS`."""
        reason = counted(count, "part was not compared", "parts were not compared")
        self._note(code=int(ExitCode.DIFFERS), reason=reason)
        return ExitCode.DIFFERS

    def _note(self, **values: Any) -> None:
        self.record = replace(self.record, **values)

    def _is_idle(self) -> bool:
        """Return True if the history needs no line: a sync with nothing new after a good run."""
        record = self.record
        if record.kind != "sync" or record.changed or not record.succeeded:
            return False
        before = last(self._history)
        return record.commit == record.before and (before is None or before.succeeded)


def _reason(code: ExitCode, failures: list[str]) -> str:
    """Return the first of `failures` with the number of the others; empty for a good run."""
    if code == ExitCode.OK:
        return ""
    more = f" (and {len(failures) - 1:,} more)" if len(failures) > 1 else ""
    return failures[0] + more if failures else code.meaning


def _ended_by(error: BaseException) -> tuple[int, str]:
    """Return the exit code and reason of a run that an exception ended."""
    if isinstance(error, HuaiError):
        return int(error.exit_code), error.message
    if isinstance(error, KeyboardInterrupt):
        return int(ExitCode.INTERRUPTED), "interrupted"
    if isinstance(error, BrokenPipeError):
        return int(ExitCode.INTERRUPTED), "the reader of its output went away"
    if isinstance(error, Exception):
        return _CRASHED, f"{type(error).__name__}: {error}"
    return int(ExitCode.TERMINATED), "terminated"
