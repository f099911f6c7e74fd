"""What is examined, and what a check found there."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from huai_client.metadata.commit import Commit
from huai_client.metadata.repository import Repository
from huai_client.mirror import Mirror
from huai_client.state import state as states
from huai_schema.errors import ExitCode, HuaiError


@dataclass(frozen=True)
class Case:
    """A module that may have anything wrong with it."""

    mirror: Mirror

    @property
    def dest(self) -> Path:
        """The top of the tree."""
        return self.mirror.dest

    @cached_property
    def state(self) -> states.State:
        """What is recorded; `StateError` if it cannot be read."""
        return states.load(self.mirror.paths.state)

    def newest_here(self) -> Commit | None:
        """The commit that was fetched or applied last; None: there is none.

        `DamagedRepositoryError` if it cannot be read.
        """
        if not self.mirror.paths.repository.exists():
            return None
        repository = Repository(self.mirror.paths.repository, make=False)
        for commit in (repository.fetched, self.state.applied):
            if commit is not None and repository.has(commit):
                return repository.commit(commit)
        return None


class Result(StrEnum):
    """How it stands."""

    OK = "ok"
    WARN = "warn"
    """A sync may go well; somebody should know all the same."""
    FAIL = "fail"
    """A sync does not go well."""
    SKIPPED = "skipped"
    """Not found out, and the message says why."""


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
    """Somebody should know."""
    return Finding(Result.WARN, message, fix)


def fail(message: str, fix: str, code: ExitCode) -> Finding:
    """A sync does not go well."""
    return Finding(Result.FAIL, message, fix, code)


def skipped(reason: str) -> Finding:
    """It could not be found out."""
    return Finding(Result.SKIPPED, reason)


def failed_by(error: HuaiError) -> Finding:
    """What a sync would say itself."""
    return fail(error.message, error.hint or "read the message", error.exit_code)
