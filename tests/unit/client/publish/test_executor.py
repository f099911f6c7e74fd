"""`execute`: order, counts, effects of a failure."""

import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from huai_client.diff.candidate import Move, Remove
from huai_client.plan.operations import Plan, Stage
from huai_client.plan.withhold import Withholding
from huai_client.publish.executor import execute
from huai_client.publish.report import Report, StepCounts
from huai_client.tree import PathError, Places, RowResult, Tree
from huai_client.tree.tree import Removal
from huai_schema.entries import File
from huai_schema.paths import RelPath
from tests.support.local_trees import (
    Staged,
    at,
    directory,
    file,
    linked,
    symlink,
)
from tests.support.orders import order_of

WHOLE = Plan(
    clear=[Remove(at(b"way/in"), directory=False), Remove(at(b"way"), directory=True)],
    make=[at(b"new"), at(b"new/in")],
    moves=[Move(at(b"old"), at(b"new/moved"))],
    stages=[
        Stage("payload", [file(b"new/in/f")], [linked(b"new/l", file(b"new/in/f"))]),
        Stage("pointers", [file(b"way")], [], [symlink(b"latest")], [file(b"keep", mode=0o600)]),
    ],
    removals=[Remove(at(b"gone/f"), directory=False), Remove(at(b"gone"), directory=True)],
    directories=[directory(b"new/in"), directory(b"new", mode=0o555), directory(b"")],
)


def build(dest: Path) -> None:
    for name in ("way", "old", "gone"):
        (dest / name).mkdir()
    for name in ("way/in", "old/f", "gone/f", "keep"):
        (dest / name).touch()


def run(dest: Path, plan: Plan) -> tuple[Report, list[tuple[str, RelPath]]]:
    steps: list[tuple[str, RelPath]] = []
    with Tree(dest) as tree:
        report = execute(
            plan, tree, Staged(dest), lambda kind, path: steps.append((str(kind), path))
        )
    return report, steps


def test_every_kind_of_step_in_order(short_path: Path) -> None:
    build(short_path)
    report, steps = run(short_path, WHOLE)
    assert report.problems == ()
    assert report.counts == StepCounts(2, 2, 1, 2, 1, 1, 1, 2, 3)
    assert steps == [
        ("clear", b"way/in"),
        ("clear", b"way"),
        ("make", b"new"),
        ("make", b"new/in"),
        ("move", b"new/moved"),
        ("publish", b"new/in/f"),
        ("link", b"new/l"),
        ("publish", b"way"),
        ("attributes", b"keep"),
        ("symlink", b"latest"),
        ("remove", b"gone/f"),
        ("remove", b"gone"),
        ("directory", b"new/in"),
        ("directory", b"new"),
        ("directory", b""),
    ]
    assert sorted(path.name for path in short_path.iterdir()) == [
        ".~tmp~",
        "keep",
        "latest",
        "new",
        "way",
    ]
    assert (short_path / "new/moved/f").exists()


def test_each_stage_is_timed(short_path: Path) -> None:
    build(short_path)
    report, _ = run(short_path, WHOLE)
    assert [(each.stage, each.changes) for each in report.published] == [
        ("payload", 2),
        ("pointers", 3),
    ]
    assert 0 < report.mixed_seconds < sum(each.seconds for each in report.published)


def test_everything_is_ready_before_the_first_rename(short_path: Path) -> None:
    """A missing file is detected before anything makes way for it, or names it."""
    build(short_path)
    with Tree(short_path) as tree:
        staged = Staged(short_path)

        def content(files: Sequence[File]) -> Places:
            places = staged(files)
            lost = {n: b"nothing" for n, each in enumerate(files) if each.path == b"way"}
            return places._replace(names=places.names | lost)

        report = execute(WHOLE, tree, content, print)
    assert [problem.path for problem in report.problems] == [b"way"]
    assert report.counts.cleared == 0
    assert (short_path / "way/in").exists()
    assert (short_path / "new/in/f").exists()
    assert not (short_path / "latest").is_symlink()
    assert (short_path / "gone/f").exists()
    assert report.withheld > 0


@pytest.mark.parametrize("broken", ["clear", "make", "move", "payload"])
def test_a_problem_stops_later_stages_and_removals(short_path: Path, broken: str) -> None:
    build(short_path)
    if broken == "clear":
        (short_path / "way/unknown").touch()
    elif broken == "make":
        (short_path / "new").touch()
    elif broken == "move":
        (short_path / "old/f").unlink()
        (short_path / "old").rmdir()
    else:
        (short_path / "new/in/f").mkdir(parents=True)
    report, steps = run(short_path, WHOLE)
    assert report.problems
    assert not (short_path / "latest").is_symlink()
    assert (short_path / "gone/f").exists()
    assert ("directory", b"") in steps
    if broken != "make":
        assert stat.S_IMODE((short_path / "new").stat().st_mode) == 0o555
        assert (short_path / "new/in").is_dir()


def test_an_extraneous_file_below_what_becomes_a_file_costs_that_file_alone(
    short_path: Path,
) -> None:
    build(short_path)
    (short_path / "way/unknown").touch()
    with Tree(short_path) as tree:
        withholding = Withholding(order_of())
        report = execute(WHOLE, tree, Staged(short_path), lambda *_: None, withholding)
    ((path, reason),) = report.problems
    assert path == b"way"
    assert "way/unknown" in reason
    assert "--adopt --delete-extraneous" in reason
    assert sorted(each.name for each in (short_path / "way").iterdir()) == ["in", "unknown"]
    assert (short_path / "new/in/f").exists()
    # `latest`, next to the failed path, waits, and may name all paths below.
    assert not (short_path / "latest").is_symlink()
    assert (short_path / "gone/f").exists()


def test_a_file_that_cannot_be_deleted_keeps_no_other(short_path: Path) -> None:
    class Stubborn(Tree):
        def remove_entries(self, items: Sequence[Removal]) -> RowResult:
            paths = [path for path, _ in items]
            if b"gone/f" not in paths:
                return super().remove_entries(items)
            count = paths.index(at(b"gone/f"))
            if count:
                assert super().remove_entries(items[:count]) == (count, None)
            return RowResult(count, PathError(paths[count], "immutable"))

    build(short_path)
    (short_path / "bye").touch()
    removals = [*WHOLE.removals, Remove(at(b"bye"), directory=False)]
    with Stubborn(short_path) as tree:
        report = execute(
            Plan([], [], [], [], removals, []), tree, Staged(short_path), lambda *_: None
        )
    assert [problem.path for problem in report.problems] == [b"gone/f"]
    assert report.extraneous == ()
    assert (short_path / "gone/f").exists()
    assert not (short_path / "bye").exists()


def test_extraneous_files_are_named_and_stop_nothing(short_path: Path) -> None:
    build(short_path)
    (short_path / "gone/unknown").touch()
    (short_path / "bye").touch()
    removals = [*WHOLE.removals, Remove(at(b"bye"), directory=False)]
    report, _ = run(short_path, Plan([], [], [], [], removals, []))
    assert report.extraneous == (b"gone",)
    assert report.problems == ()
    assert report.counts.removed == 2
    assert (short_path / "gone/unknown").exists()
    assert not (short_path / "bye").exists()


def test_a_directory_cannot_move_into_itself(short_path: Path) -> None:
    (short_path / "d/in").mkdir(parents=True)
    moves = [Move(at(b"d"), at(b"d/in/d"))]
    report, _ = run(short_path, Plan([], [], moves, [], [], []))
    assert [problem.path for problem in report.problems] == [b"d/in/d"]
