"""The speed of services: a small record that expires."""

import json
from pathlib import Path

import pytest

from huai_client.state.upstreams import ServiceSpeed, UpstreamSpeed
from tests.support.clock import Clock

A, B = "https://a.example", "https://b.example"
T0 = 1_700_000_000
MIB = 1 << 20


@pytest.fixture(name="path")
def path_of_the_record(tmp_path: Path) -> Path:
    return tmp_path / "speeds.json"


def test_other_runs_know_it_too(path: Path) -> None:
    UpstreamSpeed(path, Clock()).observe(A, 8 * MIB, 4, 0.5)
    measured = UpstreamSpeed(path, Clock()).of_service(A)
    assert measured is not None
    assert measured == ServiceSpeed(A, 0.5, 2 * MIB, T0)
    assert measured.expected == 0.5 + 2
    assert UpstreamSpeed(path, Clock()).of_service(B) is None


def test_each_transfer_counts_half(path: Path) -> None:
    speed = UpstreamSpeed(path, Clock())
    speed.observe(A, 8 * MIB, 8, 0.5)
    speed.observe(A, 9 * MIB, 3, 0.25)
    assert speed.of_service(A) == ServiceSpeed(A, 0.375, 2 * MIB, T0)


def test_little_tells_nothing_of_the_rate(path: Path) -> None:
    speed = UpstreamSpeed(path, Clock())
    speed.observe(A, 1000, 10)
    assert speed.of_service(A) is None
    speed.observe(A, 1000, 10, 0.25)
    assert speed.of_service(A) == ServiceSpeed(A, 0.25, 0, T0)
    speed.observe(A, MIB, 1)
    assert speed.of_service(A) == ServiceSpeed(A, 0.25, MIB, T0)


def test_it_is_forgotten_after_a_week(path: Path) -> None:
    clock = Clock()
    UpstreamSpeed(path, clock).observe(A, MIB, 1)
    clock.now += 7 * 86_400 - 1
    assert UpstreamSpeed(path, clock).of_service(A)
    clock.now += 1
    assert UpstreamSpeed(path, clock).of_service(A) is None
    clock.now = T0 - 5
    assert UpstreamSpeed(path, clock).of_service(A) is None, "the clock was set back"


def test_it_holds_a_hundred(path: Path) -> None:
    clock = Clock()
    speed = UpstreamSpeed(path, clock)
    for number in range(120):
        clock.now += 1
        speed.observe(f"https://{number}.example", MIB, 1)
    assert len(json.loads(path.read_text())) == 100
    assert speed.of_service("https://19.example") is None
    assert speed.of_service("https://20.example")


def test_several_runs_write_one_record(path: Path) -> None:
    one, two = UpstreamSpeed(path, Clock()), UpstreamSpeed(path, Clock())
    one.observe(A, MIB, 1)
    two.observe(B, MIB, 1)
    one.observe(A, MIB, 1)
    assert {row[0] for row in json.loads(path.read_text())} == {A, B}
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "{}",
        "[[]]",
        '["https://a.example"]',
        '[["https://a.example", NaN, 5, 1700000000]]',
        '[["https://a.example", 1, 1e999, 1700000000]]',
        '[["https://a.example", 1, -5, 1700000000]]',
        '[["https://a.example", 1, 5, 17000000000000000000000]]',
        f'[["https://a.example", 1, {"9" * 400}, 1700000000]]',
        '[["https://a.example", 1, 5, "x"]]',
        "[[1, 1, 5, 1700000000]]",
    ],
)
def test_what_is_no_record_is_none(path: Path, text: str) -> None:
    path.write_text(text)
    speed = UpstreamSpeed(path, Clock())
    assert speed.of_service(A) is None
    speed.observe(A, MIB, 1)
    assert UpstreamSpeed(path, Clock()).of_service(A)


def test_without_a_file_it_lasts_for_the_run() -> None:
    speed = UpstreamSpeed(None)
    speed.observe(A, MIB, 1)
    assert speed.of_service(A)
