"""The findings of a check.  Pure."""

from enum import StrEnum
from typing import NamedTuple

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
    """The repair, for `WARN` and `FAIL`."""
    code: ExitCode = ExitCode.OK
    """The exit code of a sync, for `FAIL`."""


def ok(message: str) -> Finding:
    """Return a finding without a problem."""
    return Finding(Result.OK, message)


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
