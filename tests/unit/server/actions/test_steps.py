"""A command that updates several things for a commit ends with the worst of their exit codes."""

from typing import Any

from huai_program.locking import LockedError
from huai_schema.errors import ExitCode
from huai_schema.paths import RelPath
from huai_server.actions.modules import AfterCommit, Committed
from huai_server.commit.later import DigestResult
from huai_server.commit.result import CommitResult
from huai_server.export.update import ExportUpdate
from huai_server.fallback.after_commit import AttrTreeUpdate
from huai_server.scan.types import Problem
from huai_server.state.errors import StorageError
from huai_server.static.update import StaticUpdate

HEAD: Any = None
LOCKED, FULL = LockedError("another run"), StorageError("no space")
UNREAD = (Problem(RelPath(b"a"), "unreadable", "its old entry stays"),)
INCOMPLETE = CommitResult(HEAD, changed=False, problems=UNREAD)
UNDIGESTED = DigestResult(HEAD, False, 0, 0, 0, UNREAD)  # noqa: FBT003 - fields of a value
LOCKED_EXPORT = ExportUpdate(failure=LOCKED)
NO_TREE, FAILED_TREE = AttrTreeUpdate(), AttrTreeUpdate(failure=FULL)
NO_FILES = StaticUpdate()
FAILED_FILES = StaticUpdate(failures=(LOCKED, FULL))
"""One of two places fails harder."""


def test_what_follows_a_commit_may_fail_harder_than_the_commit() -> None:
    for after, code in (
        (AfterCommit(), ExitCode.INCOMPLETE),
        (AfterCommit(NO_FILES, NO_TREE, LOCKED_EXPORT), ExitCode.LOCKED),
        (AfterCommit(FAILED_FILES, NO_TREE, LOCKED_EXPORT), ExitCode.FILE_IO),
        (AfterCommit(FAILED_FILES, FAILED_TREE, LOCKED_EXPORT), ExitCode.FALLBACK),
    ):
        assert Committed(INCOMPLETE, after).exit_code == code
        assert Committed(UNDIGESTED, after).exit_code == code


def test_each_failure_of_what_follows_is_told() -> None:
    after = AfterCommit(FAILED_FILES, FAILED_TREE, LOCKED_EXPORT)
    assert after.failures == [LOCKED, FULL, LOCKED, FULL]
    assert AfterCommit().failures == []
