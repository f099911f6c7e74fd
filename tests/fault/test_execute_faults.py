"""Every operation of a plan may fail, with any error: nothing is lost, the next run finishes."""

import errno
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from huai_client.diff.findings import Kind
from huai_client.publish.executor import execute
from huai_client.publish.report import Report
from huai_client.tree import PathError, StorageError, Tree
from huai_schema.entries import Directory, File
from tests.fault.cut_execution import AFTER, MovedContent, finish, plan_with_move, start
from tests.fault.sampling import some_of
from tests.support.comparing import verify
from tests.support.system_calls import CHANGING, Call, at, from_on, never, supervise

FATAL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""The file system is at its end: no further step makes sense."""
OF_ONE_PATH = (errno.EACCES, errno.EPERM)
LENIENT = {"syncfs"}
LOOSENED = {"link", "mkdir", "rename", "symlink", "unlink"}
"""After EACCES a folder that forbids its owner something is opened, and it is tried again."""
LAST = b"d/deep/f"
"""Deleted, after all else."""
DIRECTORIES = {entry.path for entry in AFTER if isinstance(entry, Directory)}


class Ground:
    """A tree before the plan, as often as needed."""

    def __init__(self, folder: Path) -> None:
        self.dest = folder / "dest"
        self._saved = folder / "saved"
        start(self._saved)
        # Staged now, so that staging is no step of the plan.
        content = MovedContent(self._saved)
        with Tree(self._saved) as tree:
            files = [file for stage in plan_with_move(tree).stages for file in stage.fetches]
        self._staged = {file.path: content.path(file).relative_to(self._saved) for file in files}

    def reset(self) -> None:
        shutil.rmtree(self.dest, ignore_errors=True)
        subprocess.run(["cp", "-a", self._saved, self.dest], check=True, timeout=30)

    def run(self) -> tuple[str, Report | None]:
        """Execute; the word is that of the error that ended it."""
        with Tree(self.dest) as tree:
            plan = plan_with_move(tree)
            try:
                report = execute(plan, tree, self._content, lambda *_: None)
            except (PathError, StorageError) as error:  # the former from syncfs only
                return error.message, None
        return "", report

    def _content(self, wanted: File) -> tuple[int, bytes]:
        path = self.dest / self._staged[wanted.path]
        # In a child that ends soon.
        return os.open(path.parent, os.O_PATH), os.fsencode(path.name)

    def under(self, decide: Callable[[Call], int | None]) -> tuple[str, Report | None]:
        """Execute in a child whose system calls `decide` answers."""
        self.reset()
        outcome = supervise(CHANGING, self.run, decide)
        assert isinstance(outcome.result, tuple), outcome
        return outcome.result

    def prove_nothing_lost(self, context: object) -> None:
        """What goes last is still there, unless all that comes before it is done."""
        if (self.dest / os.fsdecode(LAST)).exists():
            return
        with Tree(self.dest) as tree:
            found = list(verify(tree, AFTER, content=True, owners=True))
        left = [each for each in found if each.kind is not Kind.EXTRANEOUS]
        # The times of directories are set at the very end.
        assert {each.path for each in left} <= DIRECTORIES, (context, left)

    def prove_finishable(self, context: object) -> None:
        """The next run ends well, and the tree is right."""
        with Tree(self.dest) as tree:
            finish(execute(plan_with_move(tree), tree, MovedContent(self.dest), lambda *_: None))
            found = list(verify(tree, AFTER, content=True, owners=True))
        assert not found, context


@pytest.fixture
def ground(short_path: Path) -> Ground:
    return Ground(short_path)


def steps_of(ground: Ground) -> list[Call]:
    ground.reset()
    outcome = supervise(CHANGING, ground.run, never)
    assert len(outcome.calls) > 30, "the faults miss the run"
    ground.prove_finishable("whole")
    return outcome.calls


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", FATAL)
def test_the_disk_ends_at_any_operation(ground: Ground, number: int) -> None:
    stopped = 0
    for call in some_of(steps_of(ground), number):
        message, report = ground.under(from_on(call.step, number))
        stopped += report is None
        # Attributes that are right by chance need no call to succeed.
        assert report is None or report.problems or call.name in LENIENT, call
        assert not message or os.strerror(number) in message, call
        ground.prove_nothing_lost(call)
        ground.prove_finishable(call)
    assert stopped > 15


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [*FATAL, *OF_ONE_PATH])
def test_any_one_operation_fails(ground: Ground, number: int) -> None:
    told = 0
    lenient = LENIENT | LOOSENED if number == errno.EACCES else LENIENT
    for call in some_of(steps_of(ground), number):
        message, report = ground.under(at(call.step, number))
        failed = bool(message) or (report is not None and bool(report.problems))
        told += failed
        assert failed or call.name in lenient, call
        ground.prove_nothing_lost(call)
        ground.prove_finishable(call)
    assert told > 15


@pytest.mark.parametrize("lacking", ["open beneath", "rename by flags"])
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_a_kernel_without_a_call(ground: Ground, lacking: str, number: int) -> None:
    if (lacking, number) == ("rename by flags", errno.EPERM):
        number = errno.EINVAL  # a file system without the flag
    ground.reset()
    outcome = supervise((lacking,), ground.run, lambda _: number)
    assert outcome.calls
    assert isinstance(outcome.result, tuple)
    message, report = outcome.result
    assert message == ""
    finish(report)
    with Tree(ground.dest) as tree:
        assert list(verify(tree, AFTER, content=True, owners=True)) == []
