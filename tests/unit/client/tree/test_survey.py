"""Paths that cannot be read, among many."""

from pathlib import Path

import pytest

from huai_client.diff.candidate import Candidate
from huai_client.diff.table import CandidateTable, SurveyedPath
from huai_client.tree import PathError, Tree, View
from huai_schema.entries import Entry
from tests.support.local_trees import at, file, linked
from tests.support.unprivileged import run_unprivileged


def place(path: bytes, expected: Entry | None = None) -> SurveyedPath:
    return at(path), expected, ()


def survey(view: View, places: list[SurveyedPath]) -> list[Candidate]:
    table = CandidateTable(view.names)
    table.add(places)
    view.survey(table.engine)
    return [*table]


def closed(folder: Path) -> None:
    (folder / "d").mkdir()
    (folder / "d" / "f").touch()
    (folder / "g").touch()
    (folder / "d").chmod(0o600)


def steps_that_are_refused(folder: Path) -> None:
    closed(folder)
    leader = file(b"d/f")
    for places in ([place(b"g"), place(b"d/f")], [place(b"g", linked(b"g", leader))]):
        with View(folder) as view, pytest.raises(PathError, match="d/f"):
            survey(view, places)


def steps_that_open_up(folder: Path) -> None:
    closed(folder)
    with Tree(folder) as tree:
        (paths_seen,) = survey(tree, [place(b"d/f", file(b"d/f"))])
        assert paths_seen.have is not None
        assert "size" in paths_seen.differing
    assert (folder / "d").stat().st_mode & 0o777 == 0o600


def test_a_path_that_cannot_be_read_is_never_taken_for_absent(short_path: Path) -> None:
    run_unprivileged(steps_that_are_refused, short_path)


def test_whoever_writes_opens_up_directories(short_path: Path) -> None:
    run_unprivileged(steps_that_open_up, short_path)
