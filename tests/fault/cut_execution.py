"""Cuts an execution by SIGKILL before each change of a file, and finishes it each time.

A program of its own, because it becomes another user: `python -m tests.fault.cut_execution FOLDER
UID` prints the number of cuts, or fails.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

from huai_client.diff.candidate import Move
from huai_client.plan.operations import Plan
from huai_client.publish.executor import execute
from huai_client.publish.report import Report
from huai_client.tree import Tree
from huai_schema.entries import Entry, File
from huai_schema.paths import RelPath
from tests.support.comparing import verify
from tests.support.local_trees import (
    Staged,
    at,
    directory,
    file,
    in_order,
    linked,
    plan_for,
    symlink,
)
from tests.support.system_calls import CHANGING, Cut, mark, supervise

POINTS = (*CHANGING, "mark")
"""Where a tree may be half changed: before each call that changes it, and after each step."""

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


def plan_with_move(tree: Tree) -> Plan:
    """As `plan_for`, but the renamed directory is moved as long as it still can be."""
    plan = plan_for(tree, AFTER)
    if tree.stat(at(OLD)) is None or tree.stat(at(MOVED)) is not None:
        return plan

    def inside(path: RelPath, folder: bytes) -> bool:
        return (path + b"/").startswith(folder + b"/")

    stage, *others = plan.stages
    left = [item for item in stage.fetches if not inside(item.path, MOVED)]
    return replace(
        plan,
        stages=[replace(stage, fetches=left), *others],
        make=[path for path in plan.make if not inside(path, MOVED)],
        removals=[item for item in plan.removals if not inside(item.path, OLD)],
        moves=[*plan.moves, Move(at(OLD), at(MOVED))],
    )


class MovedContent(Staged):
    """The renamed directory's file holds what it held before."""

    def path(self, wanted: File) -> Path:
        if wanted.path == MOVED + b"/sub/f":
            return super().path(file(OLD + b"/sub/f", 77))
        return super().path(wanted)


def start(dest: Path) -> None:
    """A tree as the run before left it."""
    dest.mkdir()
    with Tree(dest) as tree:
        finish(execute(plan_for(tree, BEFORE), tree, Staged(dest), lambda *_: None))


def finish(report: Report) -> None:
    if report.problems or report.extraneous:
        raise AssertionError(report)


def cut_at(dest: Path, point: int) -> bool:
    """Execute in a child that dies at `point`; False if it got through."""

    def run() -> None:
        with Tree(dest) as tree:
            plan = plan_with_move(tree)
            finish(execute(plan, tree, MovedContent(dest), lambda *_: mark()))

    return supervise(POINTS, run, Cut(point)).killed


def main(folder: Path) -> None:
    """Cut at the first point, at the second, ... until there is none left."""
    cut, point = True, 0
    while cut:
        point += 1
        dest = folder / str(point)
        start(dest)
        cut = cut_at(dest, point)
        with Tree(dest) as tree:
            if cut:
                finish(execute(plan_with_move(tree), tree, MovedContent(dest), lambda *_: None))
            found = list(verify(tree, AFTER, content=True, owners=True))
            if found:
                raise AssertionError(f"cut at {point}: {found}")
    sys.stdout.write(f"{point - 1}\n")


if __name__ == "__main__":
    if os.geteuid() == 0:
        user = int(sys.argv[2])
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    main(Path(sys.argv[1]))
