import io
import json
from pathlib import Path

import pytest

from huai_client.cli.console import Console
from huai_client.cli.logfile import LogFile
from huai_client.cli.progress import (
    JsonProgress,
    LoggedProgress,
    PlainProgress,
    TerminalProgress,
    choose_listener,
    time_left,
    transfer_cost,
)
from huai_client.staging import Arrival
from huai_client.transfer.listener import Listener
from huai_program.humanize import human
from huai_schema.entries import File
from huai_schema.paths import rel_path

ODD = File(rel_path(b"odd\xff\nname"), 500, 0)


class _Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _whole_transfer(listener: Listener, clock: _Clock) -> None:
    listener.started(2, 1500)
    for size in (100, 200, 1000):
        clock.now += 20
        listener.progressed(size, size // 1000)
    for _ in range(6):
        listener.retried("it broke")
    listener.waiting("it is full")
    listener.finished([ODD])
    listener.refused(ODD, Arrival.MISSING)
    listener.ended()


def _talk(*, quiet: bool = False, as_json: bool = False) -> Console:
    return Console(quiet=quiet, as_json=as_json, module="m")


def test_the_listener_is_chosen_by_options_and_by_what_stderr_is() -> None:
    log, terminal = io.StringIO(), _Terminal()
    assert isinstance(
        choose_listener(_talk(quiet=True, as_json=True), out=log, err=terminal), JsonProgress
    )
    assert isinstance(choose_listener(_talk(quiet=True), out=log, err=terminal), LoggedProgress)
    assert isinstance(choose_listener(_talk(), out=log, err=terminal), TerminalProgress)
    assert isinstance(choose_listener(_talk(), out=log, err=log), PlainProgress)


def test_the_time_left_counts_files_too() -> None:
    """Half of the files are small: by bytes alone hardly anything is done."""
    total = transfer_cost(1000, 500 << 20)
    small = transfer_cost(900, 1 << 20)
    assert 0.02 < small / total < 0.05
    assert time_left(60, done=small, total=total) == pytest.approx(60 * (total - small) / small)
    assert time_left(60, done=0, total=total) is None
    # If all files are equal, their share counts.
    left = time_left(60, done=transfer_cost(620, 620), total=transfer_cost(1000, 1000))
    assert left == pytest.approx(60 * 380 / 620)


def test_a_log_file_hears_of_troubles_only(tmp_path: Path) -> None:
    err, log = io.StringIO(), tmp_path / "log"
    console = Console(quiet=False, as_json=True, module="m", log_file=LogFile(log))
    listener = choose_listener(console, out=err, err=io.StringIO())
    _whole_transfer(listener, _Clock())
    noted = [line.partition("] ")[2] for line in log.read_text().splitlines()]
    assert noted == 6 * ["m: trying again: it broke"] + ["m: waiting: it is full"]
    kinds = [json.loads(line)["type"] for line in err.getvalue().splitlines()]
    assert [kinds[0], kinds[-1]] == ["transfer-started", "transfer-ended"]
    assert {"transfer-retried", "transfer-waiting", "file-arrived", "file-missing"} <= {*kinds}


def test_a_log_gets_a_line_every_30_seconds() -> None:
    out, clock = io.StringIO(), _Clock()
    _whole_transfer(PlainProgress(out, clock=clock), clock)
    assert out.getvalue().splitlines() == [
        "transferring 2 files, 1.5 KiB",
        "0/2 files, 200 B of 1.5 KiB, 5 B/s, 260 s left",
        "trying again: it broke",
        "waiting: it is full",
        "trying again: it broke ... and 5 more like it",
        "1 of 2 files, 1000 B here",
    ]


def test_json_lines_are_versioned_and_lose_no_byte_of_a_path() -> None:
    out, clock = io.StringIO(), _Clock()
    _whole_transfer(JsonProgress(out, "m", clock=clock, interval=30), clock)
    events = [json.loads(line) for line in out.getvalue().splitlines()]
    assert all((event.pop("v"), event.pop("module")) == (1, "m") for event in events)
    path = b"odd\xff\nname".decode("utf-8", "surrogateescape")
    assert events == [
        {"type": "transfer-started", "files": 2, "bytes": 1500},
        {"type": "transfer-progress", "bytes": 100},
        {"type": "transfer-progress", "bytes": 1000},
        *[{"type": "transfer-retried", "reason": "it broke"}] * 6,
        {"type": "transfer-waiting", "reason": "it is full"},
        {"type": "file-arrived", "path": path, "bytes": 500},
        {"type": "file-missing", "path": path, "bytes": 500},
        {"type": "transfer-ended"},
    ]


def test_a_terminal_shows_files_bytes_and_what_went_wrong() -> None:
    out = _Terminal()
    _whole_transfer(TerminalProgress(out), _Clock())
    text = out.getvalue()
    assert "1/2 files" in text
    assert "1.0/1.5 KiB" in text
    assert "odd" not in text  # the end of the run names it, once
    assert text.count("trying again: it broke") == 2
    assert "it broke ... and 5 more like it" in text


def test_silence_is_silent() -> None:
    _whole_transfer(Listener(), _Clock())


def test_sizes_for_people() -> None:
    sizes = [0, 1023, 1024, 1536 * 1024, 3 << 30, 5 << 50]
    expected = ["0 B", "1023 B", "1.0 KiB", "1.5 MiB", "3.0 GiB", "5120.0 TiB"]
    assert [human(size) for size in sizes] == expected
