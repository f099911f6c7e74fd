"""The little that survives a cut."""

import json
from pathlib import Path

import pytest

from huai_client.state import State, StateError, load, save

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
