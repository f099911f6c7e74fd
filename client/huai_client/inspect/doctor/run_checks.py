"""The execution of checks, independent of each other, and the totals of their findings.

Rule: an error that a check raises is its finding; only an exception that is a bug ends `doctor`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from huai_client.inspect.doctor.finding import Finding, Result, fail, failed_by, skipped
from huai_program.disk_hints import DISK_HINTS
from huai_program.locking import LockedError
from huai_schema.errors import ExitCode, HuaiError

Subject = TypeVar("Subject")


class Check(NamedTuple, Generic[Subject]):
    """A check of a subject."""

    id: str
    about: str
    """The subject in a few words, for people."""
    run: Callable[[Subject], Iterable[Finding]]
    """The check; a `HuaiError` becomes a failure, a `LockedError` a skipped check."""
    needs: tuple[str, ...] = ()
    """The checks that have to succeed; otherwise this one is skipped."""


class Examined(NamedTuple):
    """A finding, with its check."""

    check: str
    finding: Finding


def run_checks(checks: Iterable[Check[Subject]], subject: Subject) -> Iterator[Examined]:
    """Execute `checks` in order."""
    failed: set[str] = set()
    for check in checks:
        unmet = [need for need in check.needs if need in failed]
        if unmet:
            failed.add(check.id)
            yield Examined(check.id, skipped(f"not possible while {unmet[0]} fails"))
            continue
        for finding in _findings(check, subject):
            if finding.result is Result.FAIL:
                failed.add(check.id)
            yield Examined(check.id, finding)


def _findings(check: Check[Subject], subject: Subject) -> Iterator[Finding]:
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
