"""The execution of checks, and their findings.

Rule: an error that a check raises is its finding; only an exception that is a bug ends `doctor`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from huai_program.disk_hints import DISK_HINTS
from huai_program.locking import LockedError
from huai_schema.errors import ExitCode, HuaiError


class Result(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARN = "warn"
    """A sync may go well, but the administrator should know."""
    FAIL = "fail"
    """A sync would fail."""
    SKIPPED = "skipped"
    """The check was not made, for the reason in the message."""


class Finding(NamedTuple):
    """A result with its message."""

    result: Result
    message: str
    fix: str = ""
    """The repair, for `WARN` and `FAIL`; else what would be better, if anything."""
    code: ExitCode = ExitCode.OK
    """The exit code of a sync, for `FAIL`."""


def ok(message: str, fix: str = "") -> Finding:
    """Return a finding without a problem."""
    return Finding(Result.OK, message, fix)


def warn(message: str, fix: str) -> Finding:
    """Return a finding that the administrator should know."""
    return Finding(Result.WARN, message, fix)


def fail(message: str, fix: str, code: ExitCode) -> Finding:
    """Return a finding with which a sync fails."""
    return Finding(Result.FAIL, message, fix, code)


def skipped(reason: str) -> Finding:
    """Return the finding of a check that was not made."""
    return Finding(Result.SKIPPED, reason)


def failed_by(error: HuaiError) -> Finding:
    """Return the finding for an error with which a sync would end."""
    return fail(error.message, error.hint or "read the message", error.exit_code)


Subject = TypeVar("Subject")


class Check(NamedTuple, Generic[Subject]):
    """A check of a subject: the function that makes it, and the checks that it needs."""

    id: str
    about: str
    """The subject in a few words, for people."""
    run: Callable[[Subject], Iterable[Finding]]
    """The check; a `HuaiError` becomes a failure, a `LockedError` a skipped check."""
    needs: tuple[str, ...] = ()
    """The checks that have to succeed; otherwise this one is skipped."""


class CheckFinding(NamedTuple):
    """A finding, with its check."""

    check: str
    finding: Finding


def run_checks(checks: Iterable[Check[Subject]], subject: Subject) -> Iterator[CheckFinding]:
    """Execute `checks` in order, and yield their findings; skip those that need one that failed.

    A check that is skipped for this reason counts as failed.
    """
    failed: set[str] = set()
    for check in checks:
        unmet = [need for need in check.needs if need in failed]
        if unmet:
            failed.add(check.id)
            yield CheckFinding(check.id, skipped(f"not possible while {unmet[0]} fails"))
            continue
        for finding in _findings(check, subject):
            if finding.result is Result.FAIL:
                failed.add(check.id)
            yield CheckFinding(check.id, finding)


def _findings(check: Check[Subject], subject: Subject) -> Iterator[Finding]:
    """Yield the findings of `check`; an error that it raises is one, a held lock a skip."""
    try:
        yield from check.run(subject)
    except LockedError as error:
        yield skipped(error.message)
    except HuaiError as error:
        yield failed_by(error)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        fix = DISK_HINTS.get(error.errno or 0, "check its permissions")
        yield fail(f"{where}{error.strerror}", fix, ExitCode.FILE_IO)


class FindingTotals:
    """The counts of all findings."""

    def __init__(self) -> None:
        self._counts: Counter[Result] = Counter()
        self.exit_code = ExitCode.OK
        """The exit code of the first failure."""

    def add(self, finding: Finding) -> None:
        """Count a finding."""
        self._counts[finding.result] += 1
        self.exit_code = self.exit_code or finding.code

    def values(self) -> dict[str, int]:
        """Return the number of findings by result."""
        return {str(result): self._counts[result] for result in Result}

    def __str__(self) -> str:
        return ", ".join(f"{count} {name}" for name, count in self.values().items() if count)
