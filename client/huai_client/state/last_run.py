"""The result of a module's last run, and when its tree was last in step with the upstream.

One small file, which each sync, undo or repair replaces, even a poll that finds nothing new and has
no line in the history.  It is for people, and no decision depends on it: a missing or torn file
counts as empty, and a run does not fail if it cannot be written.
"""

from contextlib import suppress
from pathlib import Path

import msgspec

from huai_client.state import history
from huai_client.state.history import REASON_MOST, Number, RunRecord
from huai_program.record_file import RecordFile
from huai_schema.errors import ExitCode


class LastRun(msgspec.Struct, frozen=True):
    """The last run; times in seconds since the epoch."""

    began: Number
    ended: Number
    code: Number = 0
    """The exit code."""
    reason: str = ""
    """The reason of a failure, or empty."""
    in_step: Number = 0
    """The end of the last run with the tree at the newest commit (or held there), or 0."""
    failing: Number = 0
    """The end of the first failure in a row; 0 if the last run ended well."""
    gap: Number = 0
    """The seconds between the beginnings of the last two runs; 0 if that is unknown."""

    @property
    def succeeded(self) -> bool:
        """True if the run ended well."""
        return self.code == ExitCode.OK


_FILE = RecordFile(LastRun, needed=False)


def load(path: Path) -> LastRun | None:
    """Return the last run, or None if the file is missing or damaged."""
    return _FILE.load(path)


def save(path: Path, record: RunRecord, now: int) -> None:
    """Record that the run `record` ended at `now` (s since the epoch); failures are ignored."""
    before = load(path)
    succeeded = record.succeeded
    run = LastRun(
        began=record.time,
        ended=now,
        code=record.code,
        reason=record.reason[:REASON_MOST],
        in_step=now if succeeded and record.kind != "repair" else before.in_step if before else 0,
        failing=0 if succeeded else before.failing if before and before.failing else now,
        gap=max(0, record.time - before.began) if before else 0,
    )
    # Not synced to the disk: a poll must not wait for it.
    durable = before is None or (before.code, before.reason) != (run.code, run.reason)
    with suppress(OSError):
        _FILE.save(path, run, durable=durable)


def interruption(runs: Path, run: LastRun | None) -> str:
    """Return why the tree is between two commits; `runs` is the path of the module's history.

    Raises `StateError` if that cannot be read.
    """
    newest = next((each for each in history.read(runs) if each.kind != "verify"), None)
    if newest is not None and newest.ended and run is not None and not run.succeeded:
        return (
            f"the last run ended with {run.code} ({run.reason}): the next one continues from there"
        )
    return "a run was interrupted: the next one finishes it"
