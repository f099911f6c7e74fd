"""The state that survives a cut."""

import json
import os
from pathlib import Path

import pytest

from huai_client.state.state import State, StateError, load, save

A, B = "a" * 40, "b" * 40


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    assert load(path) == State()
    for state in (State(), State(A, 3, (A, B), 17, 99)):
        save(path, state)
        assert load(path) == state
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"applied": "HEAD"},
        {"applied": 5},
        {"attempted": [A, None]},
        {"attempted": None},
        {"serial": "3"},
        {"filter": None},
        {"attempted_filters": [5]},
        {"before": "HEAD"},
        {"before_filter": 5},
        {"held": 5},
        {"trash": "1"},
        {"unknown": 1},
    ],
)
def test_what_nobody_wrote_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "state.json"
    save(path, State(A, 3, (B,), 17, 99))
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(StateError, match="not a state file") as caught:
        load(path)
    assert "move it away" in caught.value.hint


def test_a_state_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="No such file"):
        save(tmp_path / "missing" / "state.json", State())


def test_a_state_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "state.json").mkdir()
    with pytest.raises(StateError, match="Is a directory"):
        load(tmp_path / "state.json")


def test_each_attempt_has_its_filter(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    state = State(A, 3, (A, B, A), entries=7, filter="H x\n", attempted_filters=("H x\n", "H y\n"))
    save(path, state)
    assert load(path) == state
    assert state.attempts == ((A, "H x\n"), (B, "H y\n"), (A, ""))


def test_a_state_from_before_there_were_filters(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    old = {"version": 1, "applied": A, "serial": 3, "attempted": [B], "time": 17, "total_bytes": 9}
    path.write_text(json.dumps(old))
    assert load(path) == State(A, 3, (B,), 17, 9)
    assert load(path).attempts == ((B, ""),)


def test_names_that_are_not_text(tmp_path: Path) -> None:
    state = State(marks=(os.fsdecode(b"\xff"), "\u20ac"))
    save(tmp_path / "state.json", state)
    assert load(tmp_path / "state.json") == state
