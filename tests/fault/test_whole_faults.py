"""New directories that are published at once: cut and refused at every change of a file."""

import errno
import shutil
from functools import partial
from pathlib import Path

import pytest

from huai_client.diff.findings import Kind
from huai_client.publish.executor import execute
from huai_client.publish.report import Report
from huai_client.tree import PathError, StorageError, Tree
from huai_schema.entries import Entry
from tests.support.comparing import verify
from tests.support.local_trees import Arrived, directory, file, in_order, linked, plan_for, symlink
from tests.support.system_calls import CHANGING, Cut, at, mark, never, supervise

POINTS = (*CHANGING, "mark")
LEADER = file(b"lead/f")
WANTED: list[Entry] = in_order(
    [
        directory(b""),
        directory(b"lead"),
        LEADER,
        linked(b"with-link/l", LEADER),
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


def prepare(dest: Path) -> Arrived:
    """What a transfer leaves, and nothing of the plan done."""
    shutil.rmtree(dest, ignore_errors=True)
    dest.mkdir()
    return stage(dest)


def stage(dest: Path) -> Arrived:
    """What is missing comes again."""
    content = Arrived(dest, ELSEWHERE)
    with Tree(dest) as tree:
        for item in plan_for(tree, WANTED).stages[0].fetches:
            content.path(item)
    return content


def run(dest: Path, content: Arrived) -> Report | None:
    """Execute; None: the disk was at its end."""
    with Tree(dest) as tree:
        plan = plan_for(tree, WANTED)
        try:
            return execute(plan, tree, content, lambda *_: mark())
        except (PathError, StorageError):  # the former from syncfs only
            return None


def differing(dest: Path) -> list[tuple[Kind, bytes]]:
    with Tree(dest) as tree:
        found = verify(tree, WANTED, content=True, owners=True)
        return [(each.kind, each.path) for each in found]


def prove_finishable(dest: Path, context: object) -> None:
    report = run(dest, stage(dest))
    assert report is not None, context
    assert report.problems == (), context
    assert differing(dest) == [], context


def test_a_kill_at_every_change(short_path: Path) -> None:
    point, cut = 0, True
    while cut:
        point += 1
        dest = short_path / "dest"
        content = prepare(dest)
        cut = supervise(POINTS, partial(run, dest, content), Cut(point)).killed
        unwanted = [found for found in differing(dest) if found[0] is Kind.EXTRANEOUS]
        assert unwanted == [], point
        prove_finishable(dest, point)
    assert point > 20


@pytest.mark.parametrize("number", [errno.EPERM, errno.EIO, errno.EEXIST])
def test_any_one_change_fails(short_path: Path, number: int) -> None:
    dest = short_path / "dest"
    content = prepare(dest)
    calls = supervise(CHANGING, partial(run, dest, content), never).calls
    assert len(calls) > 15
    for call in calls:
        content = prepare(dest)
        outcome = supervise(CHANGING, partial(run, dest, content), at(call.step, number))
        report = outcome.result
        told = not isinstance(report, Report) or report.problems
        # What cannot be published as a whole is published file by file, and nobody need be told.
        assert told or differing(dest) == [], call
        prove_finishable(dest, call)
