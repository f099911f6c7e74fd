"""What systemd is told."""

import socket
from pathlib import Path

import pytest

from huai_server.watch.service_manager import notify


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
