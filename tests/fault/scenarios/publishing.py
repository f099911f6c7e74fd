"""A plan that is executed: on a tree with changes of all kinds, and on new directories."""

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from huai_client.diff.candidate import DifferenceKind, Move
from huai_client.plan.operations import Plan
from huai_client.publish.executor import execute
from huai_client.publish.report import Report
from huai_client.tree import PathError, Places, StorageError, Tree
from huai_native import _native
from huai_schema.entries import Directory, Entry, File
from huai_schema.paths import RelPath
from tests.fault.killing import Ground, Hit
from tests.support.comparing import verify
from tests.support.local_trees import (
    ArrivedFiles,
    Staged,
    at,
    directory,
    file,
    in_order,
    linked,
    plan_for,
    symlink,
)
from tests.support.unprivileged import NOBODY, as_nobody, become_nobody

Result = TypeVar("Result")

OLD, MOVED = b"old", b"m/moved"
BEFORE: list[Entry] = in_order(
    [
        directory(b""),
        directory(b"d", mode=0o555),
        directory(b"d/deep"),
        file(b"d/deep/f"),
        directory(OLD),
        directory(OLD + b"/sub"),
        file(OLD + b"/sub/f", 77),
        file(b"becomes-directory"),
        directory(b"becomes-file"),
        symlink(b"becomes-file/s"),
        file(b"changes", 10),
        file(b"leader", 10),
        linked(b"other", file(b"leader", 10)),
        symlink(b"turns", b"left"),
        file(b"mode"),
    ]
)
LEADER = file(b"leader", 20, mtime=5)
AFTER: list[Entry] = in_order(
    [
        directory(b"", mtime=3),
        directory(b"becomes-directory", mode=0o2555),
        file(b"becomes-directory/f", mode=0o4755),
        file(b"becomes-file"),
        file(b"changes", 4000),
        directory(b"d", mode=0o555),
        LEADER,
        linked(b"d/third", LEADER),
        linked(b"other", LEADER),
        directory(b"m"),
        directory(MOVED, mtime=9),
        directory(MOVED + b"/sub"),
        file(OLD + b"/sub/f", 77)._replace(path=at(MOVED + b"/sub/f")),
        symlink(b"turns", b"right"),
        file(b"mode", mode=0o600),
    ]
)
LAST = "d/deep/f"
"""Deleted, after all else."""
DIRECTORIES = {entry.path for entry in AFTER if isinstance(entry, Directory)}
LENIENT = {"syncfs"}
LOOSENED = {"link", "mkdir", "rename", "symlink", "unlink"}
"""After EACCES a folder that forbids its owner something is opened, and it is tried again."""


def plan_with_move(tree: Tree) -> Plan:
    """As `plan_for`, but the renamed directory is moved as long as it still can be."""
    plan = plan_for(tree, AFTER)
    if tree.stat(at(OLD)) is None or tree.stat(at(MOVED)) is not None:
        return plan

    def inside(path: RelPath, folder: bytes) -> bool:
        return (path + b"/").startswith(folder + b"/")

    stage, *later_stages = plan.stages
    left = [item for item in stage.fetches if not inside(item.path, MOVED)]
    return replace(
        plan,
        stages=[replace(stage, fetches=left), *later_stages],
        make=[path for path in plan.make if not inside(path, MOVED)],
        removals=[item for item in plan.removals if not inside(item.path, OLD)],
        moves=[*plan.moves, Move(at(OLD), at(MOVED))],
    )


class MovedContent(Staged):
    """The renamed directory's file holds what it held before."""

    def path(self, entry: File) -> Path:
        if entry.path == MOVED + b"/sub/f":
            return super().path(file(OLD + b"/sub/f", 77))
        return super().path(entry)


def finish(report: Report | None) -> None:
    assert report is not None
    assert (list(report.problems), list(report.extraneous)) == ([], [])


def _word(plan: Plan, tree: Tree, staged: Callable[[Sequence[File]], Places]) -> str:
    """Execute; "done", "problems", or the message of the error that ended it."""
    try:
        report = execute(plan, tree, staged, lambda *_: None)
    except (PathError, StorageError) as error:  # the former from syncfs only
        return error.message
    return "problems" if report.problems else "done"


class Changing:
    """A tree before a plan with an operation of each kind; its content is staged."""

    def __init__(self, ground: Ground, *, by_nobody: bool = False) -> None:
        self.dest, self.by_nobody = ground.folder / "dest", by_nobody
        self.folders = [self.dest]
        if by_nobody and os.geteuid() == 0:
            os.chown(ground.folder, NOBODY, NOBODY)
        self.staged: dict[RelPath, Path] = self._as_user(self._make)

    def _as_user(self, work: Callable[[], Result]) -> Result:
        return as_nobody(work) if self.by_nobody else work()

    def _make(self) -> dict[RelPath, Path]:
        self.dest.mkdir()
        with Tree(self.dest) as tree:
            finish(execute(plan_for(tree, BEFORE), tree, Staged(self.dest), lambda *_: None))
            files = [file for stage in plan_with_move(tree).stages for file in stage.fetches]
        content = MovedContent(self.dest)
        return {each.path: content.path(each) for each in files}

    def _content(self, files: Sequence[File]) -> Places:
        paths = [self.staged[each.path] for each in files]
        # In a child that ends soon.
        folder = os.open(paths[0].parent if paths else self.dest, os.O_PATH)
        names = {number: os.fsencode(path.name) for number, path in enumerate(paths)}
        return Places(_native.Arrived(), folder, folder, names)

    def run(self) -> str:
        if self.by_nobody:
            become_nobody()
        with Tree(self.dest) as tree:
            return _word(plan_with_move(tree), tree, self._content)

    def nothing_is_lost(self, hit: Hit) -> str:
        """The last entries are there unless all else is done; each error is reported."""
        lenient = LENIENT | LOOSENED if hit.fault.answer == errno.EACCES else LENIENT
        assert hit.killed or hit.result != "done" or hit.call in lenient or hit.fault.onward
        assert hit.killed or hit.result in ("done", "problems") or hit.names_the_reason
        if not (self.dest / LAST).exists():
            # The times of directories are set at the very end.
            left = [each for each in self.differing() if each[0] != DifferenceKind.EXTRANEOUS]
            assert {path for _, path in left} <= DIRECTORIES
            return "new"
        return "old"

    def differing(self) -> list[tuple[str, bytes]]:
        return self._as_user(lambda: _differing(self.dest, AFTER))

    def is_finished(self, _: Hit) -> None:
        self._as_user(self._finish)
        assert self.differing() == []

    def _finish(self) -> None:
        with Tree(self.dest) as tree:
            content = MovedContent(self.dest)
            finish(execute(plan_with_move(tree), tree, content, lambda *_: None))


def _differing(dest: Path, entries: Sequence[Entry]) -> list[tuple[str, bytes]]:
    with Tree(dest) as tree:
        findings = verify(tree, entries, content=True)
        return [(each.kind, each.path) for each in findings]


by_nobody = partial(Changing, by_nobody=True)

FIRST = file(b"lead/f")
NEW: list[Entry] = in_order(
    [
        directory(b""),
        directory(b"lead"),
        FIRST,
        linked(b"with-link/l", FIRST),
        directory(b"with-link", mode=0o700),
        file(b"with-link/f"),
        directory(b"new", mode=0o555),
        directory(b"new/empty", mode=0o2555),
        directory(b"new/in", mtime=5),
        file(b"new/in/f"),
        file(b"new/in/g", mode=0o444),
        file(b"new/top"),
        linked(b"new/in/hard", file(b"new/top")),
        symlink(b"new/empty/soft", b"../top"),
        symlink(b"new/soft", b"in"),
    ]
)
ELSEWHERE = [b"new/in/g"]


class WholeDirectories:
    """New directories, with their content as a transfer leaves it."""

    def __init__(self, ground: Ground) -> None:
        self.dest = ground.folder / "dest"
        self.folders = [self.dest]
        self.dest.mkdir()
        self._stage()

    def _stage(self) -> ArrivedFiles:
        """Let what is missing come again."""
        content = ArrivedFiles(self.dest, ELSEWHERE)
        with Tree(self.dest) as tree:
            for item in plan_for(tree, NEW).stages[0].fetches:
                content.path(item)
        return content

    def run(self) -> str:
        with Tree(self.dest) as tree:
            return _word(plan_for(tree, NEW), tree, ArrivedFiles(self.dest, ELSEWHERE))

    def nothing_is_extraneous(self, hit: Hit) -> None:
        findings = _differing(self.dest, NEW)
        assert [path for kind, path in findings if kind == DifferenceKind.EXTRANEOUS] == []
        # A stage that cannot be published at once is published file by file, without a problem.
        assert hit.result != "done" or findings == []

    def is_finished(self, _: Hit) -> None:
        content = self._stage()
        with Tree(self.dest) as tree:
            finish(execute(plan_for(tree, NEW), tree, content, lambda *_: None))
        assert _differing(self.dest, NEW) == []
