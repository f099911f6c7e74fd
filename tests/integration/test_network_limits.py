"""An upstream's connections, shared by all clients, and a module's bandwidth."""

import fcntl
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from huai_client.config import load as client_config
from huai_client.state.hosts import Hosts
from huai_client.transfer.errors import UpstreamFullError
from huai_client.transfer.fetch import Outcome
from huai_client.transfer.options import TransferOptions
from huai_schema.entries import File
from tests.support.processes import until
from tests.support.rsyncd import rsync_daemon
from tests.support.transfers import TEST_OPTIONS, Downstream, put_many
from tests.support.upstream import SECONDS, Site, ended


def fetch_at_once(
    downs: list[Downstream], files: list[File], url: str, options: list[TransferOptions]
) -> list[Outcome]:
    """Run as many transfers at a time."""
    outcomes: list[Outcome] = []

    def fetch(down: Downstream, own: TransferOptions) -> None:
        outcomes.append(down.fetch(files, url, own))

    pairs = zip(downs, options, strict=True)
    threads = [threading.Thread(target=fetch, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return outcomes


def test_runs_of_one_client_share_the_connections_to_a_host(upstream: Path, tmp_path: Path) -> None:
    files = put_many(upstream, 8, 100_000)
    downs = [Downstream(tmp_path / f"dest{number}") for number in range(2)]
    own = replace(TEST_OPTIONS, streams=2, batch_files=2, bwlimit=1000, connections=1)
    options = [replace(own, hosts=Hosts(tmp_path)) for _ in downs]
    with rsync_daemon({"m": upstream}, max_connections="1") as url:
        outcomes = fetch_at_once(downs, files, f"{url}/m", options)
    assert [outcome.arrived for outcome in outcomes] == [files, files]
    # Each says once that it waits, and none was ever turned away.
    waits = ["127.0.0.1: all 1 connections are in use here"]
    assert [down.listener.waits for down in downs] == [waits, waits]
    assert [down.listener.retries for down in downs] == [[], []]


def test_others_have_all_connections(upstream: Path, tmp_path: Path) -> None:
    """Clients that do not know of each other queue at the upstream, and both get all."""
    files = put_many(upstream, 6, 100_000)
    downs = [Downstream(tmp_path / f"dest{number}") for number in range(2)]
    options = [
        replace(TEST_OPTIONS, streams=2, batch_files=2, bwlimit=1000, retries=0) for _ in downs
    ]
    with rsync_daemon({"m": upstream}, max_connections="1") as url:
        outcomes = fetch_at_once(downs, files, f"{url}/m", options)
    assert [outcome.arrived for outcome in outcomes] == [files, files]
    for down in downs:
        assert all("max connections (1) reached" in reason for reason in down.listener.waits)
        assert len(down.listener.waits) <= 1
        assert down.listener.retries == []
    assert any(down.listener.waits for down in downs)


def test_a_full_one_gives_way_to_another(upstream: Path, down: Downstream, tmp_path: Path) -> None:
    files = put_many(upstream, 1, 10)
    with (
        rsync_daemon({"m": upstream}, max_connections="1") as full,
        rsync_daemon({"m": upstream}) as other,
        idle_connection(f"{full}/m"),
    ):
        options = replace(TEST_OPTIONS, hosts=Hosts(tmp_path))
        assert down.fetch(files, [f"{full}/m", f"{other}/m"], options).complete
        assert not (tmp_path / "upstreams.json").exists()  # a full upstream has not failed
        with pytest.raises(UpstreamFullError):
            down.fetch(put_many(upstream, 3, 10), f"{full}/m", replace(options, patience=0.2))


def test_how_long_to_stand_in_line(place: Site) -> None:
    up = place.upstream()
    up.many(b"f", 2)
    up.commit()
    with rsync_daemon({up.name: up.tree}, max_connections="1") as full:
        url = f"{full}/{up.name}"
        down = place.downstream(up, content_urls=(url,), queue_time="1s")
        with idle_connection(url):
            given_up = down.sync("--json")
            assert given_up.code == 10
            assert "max connections (1) reached" in given_up.events("error")[0]["message"]
            assert len(given_up.events("transfer-waiting")) == 1
            down.configure(queue_time="1h")
            waits = down.spawn("sync", down.name, "--json")
            output = read_until(waits, "max connections (1) reached")
        assert ended(waits).code == 0, output


@contextmanager
def idle_connection(url: str) -> Iterator[None]:
    """Hold a connection to a daemon's module, and ask for nothing."""
    host, _, module = url.removeprefix("rsync://").partition("/")
    address, _, port = host.partition(":")
    with (
        socket.create_connection((address, int(port)), SECONDS) as connection,
        connection.makefile("rw", encoding="ascii", newline="\n") as talk,
    ):
        assert talk.readline().startswith("@RSYNCD: ")
        talk.write(f"@RSYNCD: 30.0\n{module}\n")
        talk.flush()
        assert talk.readline() == "@RSYNCD: OK\n"
        yield


@pytest.mark.parametrize("streams", [1, 3])
def test_streams_that_share_a_bandwidth_bring_everything(
    upstream: Path, down: Downstream, streams: int, url: str
) -> None:
    files = put_many(upstream, 6, 100_000)
    options = replace(TEST_OPTIONS, streams=streams, batch_files=1, bwlimit=300)
    assert down.fetch(files, url, options).complete


def _is_locked(place: Path) -> bool:
    """Return True if a process has the lock of a connection."""
    if not place.exists():
        return False
    with place.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


@pytest.mark.parametrize("killed", [False, True])
def test_processes_share_the_connections_to_a_host(place: Site, *, killed: bool) -> None:
    """Two modules of one root; the upstream would turn a second connection away."""
    ups = [place.upstream() for _ in range(2)]
    for up in ups:
        up.many(b"f", 2, 300_000)
        up.commit()
    trees = {up.name: up.tree for up in ups}
    with rsync_daemon(trees, max_connections="1", lock_file=str(place.folder / "one")) as url:
        settings: dict[str, Any] = {"connections": 1, "streams": 1, "bwlimit": 200}
        first, second = (
            place.downstream(up, content_urls=(f"{url}/{up.name}",), **settings) for up in ups
        )
        second.root = first.root
        module = client_config.load(first.root).module(first.name)
        own = {"dest": str(second.dest), "content_urls": (f"{url}/{second.name}",), "bwlimit": 0}
        client_config.add_module(first.root, second.name, msgspec.structs.replace(module, **own))
        early = first.spawn("sync", first.name, "--json")
        try:
            until(lambda: _is_locked(first.root / "hosts" / "127.0.0.1" / "0"))
            early.send_signal(signal.SIGSTOP)  # so that it is not done before the other asks
            late = second.spawn("sync", second.name, "--json")
            output = read_until(late, "all 1 connections are in use here")
            early.send_signal(signal.SIGKILL if killed else signal.SIGCONT)
            done = ended(late)
        finally:
            left = ended(early)
    assert left.code == (-signal.SIGKILL if killed else 0)
    assert done.code == 0, done
    assert "max connections" not in output + done.out + done.err


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """Return what it prints up to the line with these words."""
    assert process.stdout is not None
    output = ""
    for line in process.stdout:
        output += line
        if words in line:
            return output
    raise AssertionError(output)
