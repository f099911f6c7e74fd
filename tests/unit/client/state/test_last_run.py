"""The record of the last run: its use by polls, and the effect of a malformed file."""

from pathlib import Path

from huai_client.state import history
from huai_client.state import last_run as last
from huai_client.state.history import RunRecord
from huai_client.state.paths import ModulePlaces
from huai_client.state.state import State
from huai_client.sync.run_log import RunLog

COMMIT = "a" * 40
FAILED = RunRecord(kind="sync", time=5, code=23, reason="f: a directory is in the way")


def test_a_poll_that_finds_nothing_new_is_a_look_that_ended_well(tmp_path: Path) -> None:
    places = ModulePlaces(tmp_path)
    last.save(places.last, FAILED, 10)
    with RunLog(places, "sync") as run_log:
        run_log.started(State(applied=COMMIT))
        run_log.up_to_date(State(applied=COMMIT))
    run = last.load(places.last)
    assert run is not None
    assert (run.code, run.reason, run.failing) == (0, "", 0)
    assert run.in_step == run.ended > 10


def test_failures_in_a_row_keep_when_it_was_in_step_and_when_they_began(tmp_path: Path) -> None:
    place = tmp_path / "last"
    last.save(place, RunRecord(kind="sync", time=1), 2)
    last.save(place, FAILED, 10)
    last.save(place, FAILED, 20)
    run = last.load(place)
    assert run is not None
    assert (run.in_step, run.failing, run.ended, run.succeeded) == (2, 10, 20, False)


def test_a_file_that_is_none_says_nothing(tmp_path: Path) -> None:
    place = tmp_path / "last"
    assert last.load(place) is None
    for data in (b"", b"{", b"\xff", b"[]", b'{"began": "x"}'):
        place.write_bytes(data)
        assert last.load(place) is None
    last.save(place, FAILED, 10)
    assert last.load(place) is not None


def test_a_run_that_failed_is_not_called_cut(tmp_path: Path) -> None:
    places = ModulePlaces(tmp_path)
    assert (
        last.interruption(places.history, None) == "a run was interrupted: the next one finishes it"
    )
    history.append(places.history, FAILED)
    last.save(places.last, FAILED, 10)
    reason = last.interruption(places.history, last.load(places.last))
    assert reason.startswith("the last run ended with 23 (f: a directory is in the way)")
    history.append(places.history, RunRecord(kind="sync", time=6, ended=False))
    reason = last.interruption(places.history, last.load(places.last))
    assert reason == "a run was interrupted: the next one finishes it"
