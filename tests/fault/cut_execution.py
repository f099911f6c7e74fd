"""Cuts an execution by SIGKILL before each of its system calls, and finishes it each time.

A program of its own, because it forks: `python -m tests.fault.cut_execution FOLDER UID`
prints the number of cuts, or fails.
"""

import importlib
import os
import signal
import sys
from pathlib import Path

from huai_client.diff.candidate import Move
from huai_client.plan.operations import Plan
from huai_client.publish.executor import Report, execute
from huai_client.tree import Tree
from huai_client.verify.check import verify
from huai_schema.entries import Entry, File
from huai_schema.paths import RelPath
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

CALLS = ("rename", "mkdir", "chmod", "chown", "link", "symlink", "remove", "rmdir", "utime")
CHANGING = {f"os.{call}" for call in CALLS}
"""Audit events of the system calls that change a tree (sys.audit)."""

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

    stage = plan.stages[0]
    stage.fetches[:] = [item for item in stage.fetches if not inside(item.path, MOVED)]
    plan.make[:] = [path for path in plan.make if not inside(path, MOVED)]
    plan.removals[:] = [item for item in plan.removals if not inside(item.path, OLD)]
    plan.moves.append(Move(at(OLD), at(MOVED)))
    return plan


class MovedContent(Staged):
    """The renamed directory's file holds what it held before."""

    def path(self, wanted: File) -> Path:
        if wanted.path == MOVED + b"/sub/f":
            return super().path(file(OLD + b"/sub/f", 77))
        return super().path(wanted)


class Cut:
    """Ends this process by SIGKILL at one of the points where a tree may be half changed."""

    def __init__(self, point: int) -> None:
        self._left = point
        self.passed = 0

    def reach(self) -> None:
        self.passed += 1
        if self.passed == self._left:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_audit(self, event: str, _: tuple[object, ...]) -> None:
        if event in CHANGING:
            self.reach()


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
    child = os.fork()
    if child == 0:
        cut = Cut(point)
        with Tree(dest) as tree:
            plan = plan_with_move(tree)
            sys.addaudithook(cut.on_audit)
            execute(plan, tree, MovedContent(dest), lambda *_: cut.reach())
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    if status != 0:
        raise AssertionError(f"cut at {point}: the child ended with {status}")
    return False


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
    # Imported by now, so that the sources need not be readable for everybody.
    importlib.import_module("huai_client.tree.system")
    if os.geteuid() == 0:
        user = int(sys.argv[2])
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    main(Path(sys.argv[1]))
