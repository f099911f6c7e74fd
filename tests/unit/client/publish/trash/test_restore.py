"""Sources of the content for an undo."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_client.diff.candidate import Reuse
from huai_client.plan.operations import Plan, Stage
from huai_client.publish.trash import Trash, TrashBatch, restore
from huai_client.tree import View
from huai_schema.entries import File
from tests.support.local_trees import T0, at, content, file


@pytest.fixture
def view(tmp_path: Path) -> Iterator[View]:
    with View(tmp_path) as opened:
        yield opened


def keep_file(
    view: View, since: int, file: File, data: bytes | None = None, mtime: int = T0
) -> str:
    batch = os.fsdecode(TrashBatch(since, 0, 1).name)
    place = view.dest / ".~tmp~/huai-trash" / batch / os.fsdecode(file.path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content(file.path, file.size) if data is None else data)
    os.utime(place, ns=(mtime, mtime))
    return str(place.relative_to(view.dest))


def sources_of(view: View, *files: File, reuses: dict[File, Reuse] | None = None) -> list[str]:
    """Return the sources of the files, then those without a source, in parentheses."""
    reuses_by_path = {each.path: reuse for each, reuse in (reuses or {}).items()}
    plan = Plan([], [], [], [Stage("payload", [*files])], [], [], reuses=reuses_by_path)
    restored, missing = restore(plan, Trash(view.dest).batches(), view, ())
    sources = [os.fsdecode(each.source) for each in restored.reuses.values()]
    return [*sources, *(f"({os.fsdecode(each.path)})" for each in missing)]


A = file(b"d/a", 30)
BLIND = A._replace(digest=None)


def test_by_size_and_digest_or_time(view: View) -> None:
    place = keep_file(view, 1, A, mtime=5)
    assert sources_of(view, A) == [place]
    assert sources_of(view, BLIND) == ["(d/a)"]
    assert sources_of(view, A._replace(size=31)) == ["(d/a)"]
    assert sources_of(view, file(b"other", 30)) == ["(other)"]
    assert sources_of(view, BLIND._replace(mtime=5)) == [place]


def test_what_an_undo_that_was_cut_replaced_is_not_taken_for_it(view: View) -> None:
    right = keep_file(view, 1, A)
    keep_file(view, 2, A, b"x" * 30)
    keep_file(view, 3, A, b"y" * 30, mtime=5)
    assert sources_of(view, A) == [right]
    (view.dest / right).unlink()
    assert sources_of(view, A) == ["(d/a)"]


def test_the_youngest_of_equal_ones(view: View) -> None:
    keep_file(view, 1, A)
    youngest = keep_file(view, 2, A)
    assert sources_of(view, A) == [youngest]
    assert sources_of(view, BLIND) == [youngest]


def test_what_is_no_file(view: View) -> None:
    place = view.dest / keep_file(view, 1, A)
    place.unlink()
    os.symlink("/etc/passwd", place)
    assert sources_of(view, A._replace(size=11)) == ["(d/a)"]


def test_elsewhere_by_its_digest_only(view: View) -> None:
    moved = Reuse(at(b"moved"), T0)
    assert sources_of(view, A, reuses={A: moved}) == ["moved"]
    assert sources_of(view, BLIND, reuses={BLIND: moved}) == ["(d/a)"]
    twin = moved._replace(twin=True)
    assert sources_of(view, BLIND, reuses={BLIND: twin}) == ["moved"]
