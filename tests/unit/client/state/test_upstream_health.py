"""Services that failed recently: tried last for a while, then forgotten."""

import json
import os
from pathlib import Path

import pytest

from huai_client.state.upstreams import UpstreamHealth
from tests.support.clock import Clock

A, B = "https://a.example", "https://b.example"
T0 = 1_700_000_000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "upstreams.json"


def test_what_failed_is_late_for_ten_minutes_in_other_runs_too(path: Path, clock: Clock) -> None:
    UpstreamHealth(path, clock).failed(A, "refused")
    other = UpstreamHealth(path, clock)
    assert other.failed_lately(A)
    assert not other.failed_lately(B)
    assert other.failed_lately(B, A)
    clock.now += 599
    assert other.failed_lately(A)
    clock.now += 1
    assert not other.failed_lately(A)


def test_each_failure_doubles_it_up_to_an_hour(path: Path, clock: Clock) -> None:
    health = UpstreamHealth(path, clock)
    pauses = []
    for _ in range(5):
        health.failed(A, "refused")
        failing = health.failing()[0]
        pauses.append(failing.until - int(clock.now))
        clock.now = failing.until
    assert pauses == [600, 1200, 2400, 3600, 3600]
    assert health.failing()[0].failures == 5
    assert health.failing()[0].since == T0


def test_a_failure_while_it_is_late_counts_once(path: Path, clock: Clock) -> None:
    health = UpstreamHealth(path, clock)
    for _ in range(3):
        health.failed(A, "refused")
    assert health.failing()[0].failures == 1


def test_it_may_ask_for_a_longer_pause_of_an_hour_at_most(path: Path, clock: Clock) -> None:
    health = UpstreamHealth(path, clock)
    health.failed(A, "busy", seconds=1800)
    health.failed(B, "busy", seconds=10**9)
    assert [each.until - T0 for each in health.failing()] == [1800, 3600]


def test_an_answer_makes_it_good(path: Path, clock: Clock) -> None:
    health = UpstreamHealth(path, clock)
    health.failed(A, "refused")
    health.failed(B, "refused")
    health.succeeded(A, "never heard of")
    assert not health.failed_lately(A)
    assert [each.service for each in UpstreamHealth(path, clock).failing()] == [B]


def test_it_is_forgotten_after_a_day(path: Path, clock: Clock) -> None:
    UpstreamHealth(path, clock).failed(A, "refused")
    clock.now += 600 + 86399
    assert UpstreamHealth(path, clock).failing()
    clock.now += 1
    assert UpstreamHealth(path, clock).failing() == []


def test_a_clock_that_was_set_back_makes_no_pause_longer(path: Path, clock: Clock) -> None:
    UpstreamHealth(path, clock).failed(A, "refused")
    clock.now -= 10**7
    health = UpstreamHealth(path, clock)
    clock.now += 3600
    assert not health.failed_lately(A)


def test_a_date_that_no_calendar_has_is_none(path: Path, clock: Clock) -> None:
    path.write_text(json.dumps([[A, 1, 10**300, 10**300, "r"]]))
    failing = UpstreamHealth(path, clock).failing()[0]
    assert (failing.since, failing.until) == (T0, T0 + 3600)


def test_the_record_stays_small(path: Path, clock: Clock) -> None:
    health = UpstreamHealth(path, clock)
    for number in range(300):
        health.failed(f"https://{number}.example", "x" * 10_000)
        clock.now += 1
    services = UpstreamHealth(path, clock).failing()
    assert len(services) == 100
    assert path.stat().st_size < 100_000
    assert {each.service for each in services} == {f"https://{n}.example" for n in range(200, 300)}


def test_without_a_file_it_lasts_as_long_as_the_object(clock: Clock) -> None:
    health = UpstreamHealth(None, clock)
    health.failed(A, "refused")
    assert health.failed_lately(A)
    assert not UpstreamHealth(None, clock).failed_lately(A)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[[]]",
        "[1]",
        '["abcde"]',
        "[" * 100_000,
        '[["a", 1, 2, "x", "r"]]',
        '[["a", true, 2, 3, "r"]]',
        '[["a", 1, 2, 3, null]]',
        '[["a", 1, -1, 1700000000, "r"]]',
        "\xff",
    ],
)
def test_what_is_no_record_is_nothing(path: Path, clock: Clock, text: str) -> None:
    path.write_text(text, encoding="latin-1")
    health = UpstreamHealth(path, clock)
    assert health.failing() == []
    health.failed(A, "refused")
    assert json.loads(path.read_text())[0][0] == A


def test_a_folder_that_is_not_there_costs_the_memory_only(tmp_path: Path, clock: Clock) -> None:
    health = UpstreamHealth(tmp_path / "absent" / "upstreams.json", clock)
    health.failed(A, "refused")
    assert health.failed_lately(A)


def test_others_may_not_read_what_failed(tmp_path: Path) -> None:
    """Write the file for this user only, with any umask, because it quotes responses."""
    before = os.umask(0)
    try:
        UpstreamHealth(tmp_path / "upstreams.json").failed("https://a", "reason")
    finally:
        os.umask(before)
    assert (tmp_path / "upstreams.json").stat().st_mode & 0o777 == 0o600


def test_a_reason_that_is_not_text(path: Path, clock: Clock) -> None:
    UpstreamHealth(path, clock).failed(A, os.fsdecode(b"no \xff"))
    assert [each.reason for each in UpstreamHealth(path, clock).failing()] == ["no \\udcff"]
