"""The estimated time of a sync: measured, or unknown."""

import pytest

from huai_client.inspect.plan_totals import seconds_needed
from huai_client.state.history import RunRecord
from huai_program.humanize import format_span


def run(seconds: float, files: int, received: int, **more: object) -> RunRecord:
    values = {"kind": "sync", "time": 1, "fetched": files, **more}
    return RunRecord(seconds=seconds, received=received, **values)  # type: ignore[arg-type]


def test_nothing_is_made_up() -> None:
    assert seconds_needed([], 10, 10) is None
    ignored = [
        run(1, 5, 100, code=10),
        run(1, 0, 100),
        run(0, 5, 100),
        run(1, 5, 100, kind="verify"),
    ]
    assert seconds_needed(ignored, 10, 10) is None


def test_the_slower_of_files_and_bytes_counts() -> None:
    runs = [run(10, 100, 1000), run(10, 300, 3000)]
    assert seconds_needed(runs, 200, 0) == pytest.approx(10)
    assert seconds_needed(runs, 1, 40_000) == pytest.approx(200)
    assert seconds_needed([run(10, 100, 0)], 50, 10**9) == pytest.approx(5)


def test_only_the_last_runs_count() -> None:
    runs = [run(1, 100, 1000)] * 10 + [run(1000, 1, 1)]
    assert seconds_needed(runs, 100, 0) == pytest.approx(1)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (119.9, "119.9 s"), (120, "2 min"), (7200, "2 h"), (200_000, "2 d")],
)
def test_spans_for_people(seconds: float, text: str) -> None:
    assert format_span(seconds) == text
