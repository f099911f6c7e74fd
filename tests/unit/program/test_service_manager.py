"""The notifications to systemd."""

import socket
from pathlib import Path

import pytest

from huai_program.service_manager import notify, watchdog_seconds


@pytest.mark.parametrize("abstract", [False, True])
def test_it_gets_the_lines(
    short_path: Path, monkeypatch: pytest.MonkeyPatch, *, abstract: bool
) -> None:
    place = str(short_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(60)
        manager.bind("\0" + place if abstract else place)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{place}" if abstract else place)
        notify("READY=1", "STATUS=watching")
        assert manager.recv(1000) == b"READY=1\nSTATUS=watching"


@pytest.mark.parametrize("address", ["", "/nonexistent/notify"])
def test_without_one_nothing_happens(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify("READY=1")


def test_the_watchdog_is_told_twice_as_often_as_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    assert watchdog_seconds() is None
    monkeypatch.setenv("WATCHDOG_USEC", "120000000")
    assert watchdog_seconds() == 60
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert watchdog_seconds() is None  # it is another process's
