"""A command that brings several things to a commit ends with the worst of their exit codes."""

from typing import Any

from huai_program.locking import LockedError
from huai_schema.errors import ExitCode
from huai_schema.paths import RelPath
from huai_server.actions.modules import Attached, Committed, Digested, Relayed
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
NO_EXPORT, LOCKED_EXPORT = ExportUpdate(), ExportUpdate(failure=LOCKED)
NO_TREE, FAILED_TREE = AttrTreeUpdate(), AttrTreeUpdate(failure=FULL)
NO_FILES = StaticUpdate()
FAILED_FILES = StaticUpdate(failures=(LOCKED, FULL))
"""One of two places fails harder."""


def test_what_follows_a_commit_may_fail_harder_than_the_commit() -> None:
    assert Committed(INCOMPLETE, NO_TREE, NO_EXPORT, NO_FILES).exit_code == ExitCode.INCOMPLETE
    assert Committed(INCOMPLETE, NO_TREE, LOCKED_EXPORT, NO_FILES).exit_code == ExitCode.LOCKED
    assert Committed(INCOMPLETE, NO_TREE, LOCKED_EXPORT, FAILED_FILES).exit_code == 11
    assert Committed(INCOMPLETE, FAILED_TREE, LOCKED_EXPORT, FAILED_FILES).exit_code == 53


def test_what_follows_a_commit_of_digests_may_fail_harder() -> None:
    assert Digested(UNDIGESTED, NO_TREE, NO_FILES).exit_code == ExitCode.INCOMPLETE
    assert Digested(UNDIGESTED, NO_TREE, FAILED_FILES).exit_code == ExitCode.FILE_IO
    assert Digested(UNDIGESTED, FAILED_TREE, FAILED_FILES).exit_code == ExitCode.FALLBACK


def test_what_follows_a_relayed_or_signed_commit_fails_as_hard() -> None:
    pending = result = HEAD
    assert Relayed(result, NO_TREE, FAILED_FILES).exit_code == ExitCode.FILE_IO
    signed = Attached(pending, 2, HEAD, NO_TREE, LOCKED_EXPORT, FAILED_FILES)
    assert signed.exit_code == ExitCode.FILE_IO
    assert signed._replace(attr_tree=FAILED_TREE).exit_code == ExitCode.FALLBACK
