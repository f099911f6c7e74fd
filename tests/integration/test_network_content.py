"""Content upstreams that are down, silent, slow or full, those that stand in, and limits."""

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from huai_client.config import load as client_config
from huai_client.config.allowed_addresses import AllowedAddresses
from huai_client.config.load import RankedUrl
from huai_client.state.hosts import Hosts
from huai_client.transfer.errors import (
    TransferError,
    UpstreamFullError,
    UpstreamRefusedError,
    UpstreamSilentError,
)
from huai_client.transfer.fetch import Outcome
from huai_client.transfer.options import TransferOptions
from huai_schema.entries import File
from tests.support.listening import listening
from tests.support.nginx import Nginx, nginx
from tests.support.processes import until
from tests.support.rsyncd import rsync_daemon
from tests.support.scripted_http import Reply, Request, scripted
from tests.support.transfers import TEST_OPTIONS, Downstream, put_many
from tests.support.upstream import SECONDS, Site, Upstream, assert_equal, ended
from tests.support.weak_network import Weakness, silent, trickling, unused_port, weak

IMPATIENT = replace(TEST_OPTIONS, timeout=2, contimeout=1, retries=0)


def remembered(root: Path) -> dict[str, str]:
    """Service to reason."""
    return {row[0]: row[4] for row in json.loads((root / "upstreams.json").read_text())}


def test_an_upstream_that_is_down_is_asked_last_in_the_next_run(
    upstream: Path, down: Downstream, tmp_path: Path
) -> None:
    files = put_many(upstream, 2, 10)
    with unused_port() as dead, rsync_daemon({"m": upstream}) as url:
        urls = [f"rsync://{dead}/m", f"{url}/m"]
        options = replace(TEST_OPTIONS, hosts=Hosts(tmp_path))
        assert down.fetch(files[:1], urls, options).complete
        assert [dead in reason for reason in down.listener.retries] == [True]
        assert [*remembered(tmp_path)] == [f"rsync://{dead}"]
        with silent() as hole:  # would be asked first, if nothing were remembered of it
            later = replace(options, hosts=Hosts(tmp_path))
            later.hosts.health.failed(f"rsync://{hole}", "silent")
            assert down.fetch(files[1:], [f"rsync://{hole}/m", *urls], later).complete
            assert len(down.listener.retries) == 1, "the silent one is not asked"


def test_an_upstream_that_answers_again_is_forgotten(
    upstream: Path, down: Downstream, tmp_path: Path
) -> None:
    hosts = Hosts(tmp_path)
    with rsync_daemon({"m": upstream}) as url:
        hosts.health.failed(url, "down")
        options = replace(TEST_OPTIONS, hosts=hosts)
        files = put_many(upstream, 2, 10)
        assert down.fetch(files[:1], f"{url}/m", options).complete
        assert remembered(tmp_path) == {}
        assert down.fetch(files[1:], [f"{url}/other", f"{url}/m"], options).complete
        assert [*remembered(tmp_path)] == [f"{url}/other/"], "a refused module, of its URL alone"


def test_a_silent_one_gives_way(upstream: Path, down: Downstream, tmp_path: Path) -> None:
    options = replace(IMPATIENT, hosts=Hosts(tmp_path))
    with silent() as hole, rsync_daemon({"m": upstream}) as url:
        urls = [f"rsync://{hole}/m", f"{url}/m"]
        assert down.fetch(put_many(upstream, 1, 10), urls, options).complete
        assert [*remembered(tmp_path)] == [f"rsync://{hole}"]


def test_a_trickle_is_ended_and_what_came_stays(upstream: Path, down: Downstream) -> None:
    files = put_many(upstream, 1, 200_000)
    with rsync_daemon({"m": upstream}) as url, trickling(url, 100) as slow:
        with pytest.raises(UpstreamSilentError, match="too slowly"):
            down.fetch(files, f"rsync://{slow}/m", IMPATIENT)
        assert down.fetch(files, [f"rsync://{slow}/m", f"{url}/m"], IMPATIENT).complete


@pytest.mark.parametrize("stalls", [False, True])
def test_a_line_that_breaks_in_the_middle(
    upstream: Path, down: Downstream, tmp_path: Path, *, stalls: bool
) -> None:
    files = put_many(upstream, 10, 100_000)
    options = replace(IMPATIENT, streams=1, hosts=Hosts(tmp_path))
    broken = Weakness(most=500_000, stalls=stalls)
    with rsync_daemon({"m": upstream}) as url, weak(url, broken) as bad:
        outcome = down.fetch(files, [f"rsync://{bad}/m", f"{url}/m"], options)
    assert outcome.arrived == files
    assert sorted(down.listener.arrived) == sorted(file.path for file in files)  # each once
    # What the other one sent is what was left.
    assert outcome.bytes_received < 620_000
    assert [*remembered(tmp_path)] == [f"rsync://{bad}"]


@pytest.mark.parametrize("transport", ["http", "rsync"])
def test_one_that_drips_holds_no_file_while_another_idles(
    upstream: Path, down: Downstream, transport: str
) -> None:
    """It is well above the floor, and would take most of an hour."""
    files = put_many(upstream, 1, 4_000_000)
    options = replace(TEST_OPTIONS, timeout=1, retries=2)
    with ExitStack() as stack:
        if transport == "http":
            url = stack.enter_context(nginx(upstream)).url
            slow = f"http://{stack.enter_context(trickling(url, 1500))}"
        else:
            daemon = stack.enter_context(rsync_daemon({"m": upstream}))
            url = f"{daemon}/m"
            slow = f"rsync://{stack.enter_context(trickling(daemon, 1500))}/m"
        assert down.fetch(files, [slow, url], options).complete
    assert [slow in reason for reason in down.listener.retries] == [True]


def test_what_the_other_one_lacks_comes_from_the_one_that_dripped(
    upstream: Path, down: Downstream, tmp_path: Path
) -> None:
    """It is left once, and then asked again for what no other upstream has."""
    (tmp_path / "empty").mkdir()
    files = put_many(upstream, 1, 1_000_000)
    options = replace(TEST_OPTIONS, timeout=1, retries=1)
    requests: list[str] = []

    def talk(client: socket.socket) -> None:
        with client, suppress(OSError):
            requests.append(client.recv(65_536).decode())
            if len(requests) > 1:
                body = (upstream / os.fsdecode(files[0].path)).read_bytes()
                first = int(
                    requests[-1].lower().partition("range: bytes=")[2].partition("-")[0] or 0
                )
                range_ = f"Content-Range: bytes {first}-{len(body) - 1}/{len(body)}\r\n"
                status = f"206 P\r\n{range_}" if first else "200 OK\r\n"
                client.sendall(
                    f"HTTP/1.1 {status}Connection: close\r\n\r\n".encode() + body[first:]
                )
                return
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while not over.wait(0.1):
                client.sendall(b"x" * 50)

    over = threading.Event()
    with listening(talk) as port, nginx(tmp_path / "empty") as empty:
        urls = [f"http://127.0.0.1:{port}", empty.url]
        assert down.fetch(files, urls, options).complete
        over.set()
        assert len(empty.requests) >= 1


@pytest.mark.parametrize("transport", ["http", "rsync"])
def test_an_internal_address_that_is_not_configured_is_not_asked(
    upstream: Path, down: Downstream, transport: str
) -> None:
    """Unless a network is allowed, or a URL of client.toml is there as well."""
    files = put_many(upstream, 2, 10)
    with ExitStack() as stack:
        if transport == "http":
            url = stack.enter_context(nginx(upstream)).url
        else:
            url = f"{stack.enter_context(rsync_daemon({'m': upstream}))}/m"
        with pytest.raises(UpstreamRefusedError, match="address of this machine") as caught:
            down.fetch(
                files, url, replace(TEST_OPTIONS, allowed_addresses=AllowedAddresses()), own=False
            )
        assert "allow_networks" in caught.value.hint
        for file, allowed_addresses in zip(
            files,
            (AllowedAddresses(("http://127.0.0.1/",)), AllowedAddresses((), ("127.0.0.0/8",))),
            strict=True,
        ):
            options = replace(TEST_OPTIONS, allowed_addresses=allowed_addresses)
            assert down.fetch([file], url, options, own=False).complete


def test_no_redirection_leads_inside(upstream: Path, down: Downstream) -> None:
    """Though the URL itself is the administrator's."""
    files = put_many(upstream, 2, 10)
    with nginx(upstream) as inside:

        def lead(question: Request) -> Reply:
            return Reply("302 Found", (f"Location: {inside.url}{question.path}",))

        with scripted(lead) as outside:
            outcome = down.fetch(
                files, outside.url, replace(TEST_OPTIONS, allowed_addresses=AllowedAddresses())
            )
        assert outcome.mismatched == files
        assert inside.requests == []


@pytest.mark.parametrize(
    ("variable", "without"),
    [
        ("http_proxy", ""),
        ("http_proxy", "127.0.0.1"),
        ("all_proxy", "*"),
        ("HTTP_PROXY", "127.0.0.0/8"),
    ],
)
def test_no_redirection_leads_inside_past_a_proxy(
    upstream: Path, down: Downstream, monkeypatch: pytest.MonkeyPatch, variable: str, without: str
) -> None:
    """Whichever hosts libcurl would ask without it."""
    files = put_many(upstream, 2, 10)
    with nginx(upstream) as inside:

        def lead(question: Request) -> Reply:
            if "invalid" in question.path:
                where = inside.url + question.path.removeprefix("http://mirror.invalid")
                return Reply("302 Found", (f"Location: {where}",))
            return Reply("403 Forbidden")  # a proxy that asks no internal address

        with scripted(lead) as proxy:
            monkeypatch.setenv(variable, proxy.url)
            monkeypatch.setenv("no_proxy", without)
            options = replace(TEST_OPTIONS, allowed_addresses=AllowedAddresses())
            with suppress(TransferError):
                assert not down.fetch(files, "http://mirror.invalid/m", options, own=False).arrived
        assert inside.requests == []
        assert proxy.questions or without == "*"


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


FILES = 480
Sync = Callable[..., None]


@pytest.fixture(name="up", scope="module")
def upstream(place: Site) -> Upstream:
    up = place.upstream()
    up.many(b"d", FILES)
    up.commit()
    return up


@pytest.fixture(name="servers")
def three_servers(up: Upstream) -> Iterator[list[Nginx]]:
    with nginx(up.tree.parent) as one, nginx(up.tree.parent) as two, nginx(up.tree.parent) as three:
        yield [one, two, three]


@pytest.fixture(name="sync")
def sync_from(place: Site, up: Upstream) -> Sync:
    """A function that syncs a new downstream from these content URLs."""

    def sync(*urls: str | RankedUrl) -> None:
        down = place.downstream(up, content_urls=urls)
        down.synced()
        assert_equal(up, down)

    return sync


def counts(servers: list[Nginx]) -> list[int]:
    return [len(server.requests) for server in servers]


def test_others_bring_the_files_that_the_first_lacks(
    sync: Sync, up: Upstream, servers: list[Nginx], tmp_path: Path
) -> None:
    some = tmp_path / up.name / "d"
    some.mkdir(parents=True)
    names = sorted(path.name for path in (up.tree / "d").iterdir())
    for name in names[:100]:
        shutil.copy2(up.tree / "d" / name, some)
    with nginx(tmp_path) as first:
        sync(
            RankedUrl(f"{first.url}/{up.name}", priority=1),
            RankedUrl(f"{servers[1].url}/{up.name}", priority=7),
            f"{servers[0].url}/{up.name}",
        )
        assert len(first.requests) == FILES
    assert counts(servers) == [FILES - 100, 0, 0], "a text alone is of priority 1"


def test_files_are_divided_by_shares(sync: Sync, up: Upstream, servers: list[Nginx]) -> None:
    pairs = zip(servers, (3, 1, 0), strict=True)
    sync(*(RankedUrl(f"{server.url}/{up.name}", share=share) for server, share in pairs))
    one, two, three = counts(servers)
    assert one + two == FILES
    assert 2 * two < one < 4 * two
    assert three == 0
