"""The history of runs: bounded, valid after any cut, and without polls that find nothing new."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from huai_client.state import history
from huai_client.state import last_run as last
from huai_client.state.history import RunRecord
from huai_client.state.paths import ModulePlaces
from huai_client.state.state import State, StateError
from huai_client.sync.run_log import RunLog
from huai_schema.errors import ExitCode, FormatError

COMMIT = "a" * 40


def record(time: int, *, code: int = 0, reason: str = "", commit: str = COMMIT) -> RunRecord:
    return RunRecord(kind="sync", time=time, code=code, reason=reason, commit=commit)


def test_what_was_written_is_read_newest_first(tmp_path: Path) -> None:
    place = tmp_path / "history"
    assert history.read(place) == []
    assert history.last(place) is None
    for number in range(5):
        history.append(place, record(number, commit=f"{number:040x}"))
    assert [each.time for each in history.read(place)] == [4, 3, 2, 1, 0]
    last = history.last(place)
    assert last is not None
    assert last.time == 4


def test_failures_that_are_alike_are_one_line(tmp_path: Path) -> None:
    place = tmp_path / "history"
    for number in range(200):
        history.append(place, record(number, code=10, reason="down"))
    (merged,) = history.read(place)
    assert (merged.times, merged.time, merged.until) == (200, 0, 199)
    history.append(place, record(1000, code=10, reason="no route"))
    history.append(place, record(1001))
    history.append(place, record(1002))
    assert [each.times for each in history.read(place)] == [1, 1, 1, 200]


def test_the_end_of_a_run_takes_the_place_of_its_beginning(tmp_path: Path) -> None:
    place = tmp_path / "history"
    begun = replace(record(5), ended=False)
    history.append(place, begun)
    history.append(place, begun)
    assert [each.outcome for each in history.read(place)] == ["CUT"]
    history.append(place, record(5))
    assert [each.outcome for each in history.read(place)] == ["OK"]
    history.append(place, replace(begun, process=7))
    history.append(place, replace(record(5), process=8))
    assert [each.outcome for each in history.read(place)] == ["OK", "CUT", "OK"]
    place.unlink()
    history.append(place, record(5))
    # One that was killed stays, and runs that then fail alike are still one line.
    history.append(place, replace(record(6), ended=False))
    for number in range(7, 10):
        history.append(place, replace(record(number), ended=False))
        history.append(place, record(number, code=10, reason="down"))
    outcomes = [(each.outcome, each.times) for each in history.read(place)]
    assert outcomes == [("NETWORK", 3), ("CUT", 1), ("OK", 1)]
    assert not history.read(place)[1].succeeded


def test_a_run_that_ends_while_another_goes_on(tmp_path: Path) -> None:
    place = tmp_path / "history"
    begun = replace(record(1), ended=False)
    verified = replace(record(2), kind="verify")
    history.append(place, begun)
    history.append(place, verified)
    assert history.read(place) == [verified, begun]
    history.append(place, record(1))
    assert history.read(place) == [record(1), verified]


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_line_that_was_cut_is_passed_over_and_overwritten(tmp_path: Path, cut: int) -> None:
    place = tmp_path / "history"
    history.append(place, record(1))
    history.append(place, record(2, commit="b" * 40))
    content = place.read_bytes()
    place.write_bytes(content[:-cut])
    assert [each.time for each in history.read(place)] == [1]
    history.append(place, record(3, commit="c" * 40))
    assert [each.time for each in history.read(place)] == [3, 1]
    assert place.read_bytes().endswith(b"\n")


def test_garbage_is_passed_over(tmp_path: Path) -> None:
    place = tmp_path / "history"
    history.append(place, record(1))
    with place.open("ab") as file:
        file.write(b'\xff\xfe\n{"kind":7}\n[]\n{"kind":"sync","time":2,"unknown":{}}\n')
        file.write(b'{"kind":"a later kind","time":3}\n')
    assert [each.time for each in history.read(place)] == [3, 2, 1]


def test_it_is_bounded(tmp_path: Path) -> None:
    place = tmp_path / "history"
    reason = "x" * 10_000
    for number in range(1200):
        history.append(place, record(number, code=11, reason=f"{number}{reason}"))
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 2
    assert sum(sizes) < 600 << 10
    runs = history.read(place)
    assert [each.time for each in runs[:2]] == [1199, 1198]
    assert len(runs) > 400
    assert all(len(each.reason) == 400 for each in runs)


def test_a_history_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    history.append(tmp_path / "missing" / "history", record(1))
    target = tmp_path / "target"
    (tmp_path / "history").symlink_to(target)
    history.append(tmp_path / "history", record(1))
    assert not target.exists()


def test_a_history_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    with pytest.raises(StateError, match="history"):
        history.read(tmp_path / "history")


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (FormatError("odd"), ExitCode.FORMAT, "odd"),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, "interrupted"),
        (GeneratorExit(), ExitCode.TERMINATED, "terminated"),
        (ZeroDivisionError("oh"), 1, "ZeroDivisionError: oh"),
    ],
)
def test_a_run_that_ends_badly_is_told_of(
    tmp_path: Path, error: BaseException, code: int, reason: str
) -> None:
    place = tmp_path / "history"

    def run() -> None:
        with RunLog(ModulePlaces(tmp_path), "sync") as run_log:
            run_log.started(State(applied=COMMIT, serial=7))
            raise error

    with pytest.raises(type(error)):
        run()
    (merged,) = history.read(place)
    assert (merged.code, merged.reason, merged.before, merged.serial) == (
        code,
        reason,
        COMMIT,
        7,
    )
    run_ = last.load(tmp_path / "last")
    assert run_ is not None
    assert (run_.code, run_.reason, run_.in_step) == (code, reason, 0)
    assert run_.failing == run_.ended


def test_nothing_new_is_told_of_only_after_a_failure(tmp_path: Path) -> None:
    place = tmp_path / "history"

    def poll() -> None:
        with RunLog(ModulePlaces(tmp_path), "sync") as run_log:
            run_log.started(State(applied=COMMIT, serial=7))
            run_log.up_to_date(State(applied=COMMIT, serial=7))

    poll()
    assert not place.exists()
    history.append(place, record(1, code=10))
    poll()
    poll()
    assert [each.code for each in history.read(place)] == [0, 10]


def test_the_file_is_its_owners_only(tmp_path: Path) -> None:
    place = tmp_path / "history"
    before = os.umask(0)
    try:
        history.append(place, record(1))
    finally:
        os.umask(before)
    assert place.stat().st_mode & 0o777 == 0o600
