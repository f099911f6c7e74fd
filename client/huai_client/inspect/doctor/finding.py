"""What a check found.  Pure."""

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
    """The check was not made; the message says why."""


class Finding(NamedTuple):
    """One result."""

    result: Result
    message: str
    fix: str = ""
    """What to do; for `WARN` and `FAIL`."""
    code: ExitCode = ExitCode.OK
    """For `FAIL`: what a sync would end with."""


def ok(message: str) -> Finding:
    """All is well."""
    return Finding(Result.OK, message)


def warn(message: str, fix: str) -> Finding:
    """The administrator should know."""
    return Finding(Result.WARN, message, fix)


def fail(message: str, fix: str, code: ExitCode) -> Finding:
    """A sync does not go well."""
    return Finding(Result.FAIL, message, fix, code)


def skipped(reason: str) -> Finding:
    """It could not be found out."""
    return Finding(Result.SKIPPED, reason)


def failed_by(error: HuaiError) -> Finding:
    """The error with which a sync would end."""
    return fail(error.message, error.hint or "read the message", error.exit_code)
