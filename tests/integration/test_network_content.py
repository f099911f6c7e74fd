"""Content upstreams that are down, silent, slow or cut, and others that stand in."""

import json
import os
import socket
import threading
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from huai_client.config.reach import Reach
from huai_client.state.hosts import Hosts
from huai_client.transfer.errors import TransferError, UpstreamRefusedError, UpstreamSilentError
from tests.support.listening import listening
from tests.support.nginx import nginx
from tests.support.rsyncd import rsync_daemon
from tests.support.scripted_http import Reply, Request, scripted
from tests.support.transfers import TEST_OPTIONS, Downstream, put_many
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


def test_a_line_that_is_slow_and_good_enough(upstream: Path, down: Downstream) -> None:
    files = put_many(upstream, 1, 8000)
    with rsync_daemon({"m": upstream}) as url, trickling(url, 2500) as slow:
        assert down.fetch(files, f"rsync://{slow}/m", IMPATIENT).complete


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
            while not ended.wait(0.1):
                client.sendall(b"x" * 50)

    ended = threading.Event()
    with listening(talk) as port, nginx(tmp_path / "empty") as empty:
        urls = [f"http://127.0.0.1:{port}", empty.url]
        assert down.fetch(files, urls, options).complete
        ended.set()
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
            down.fetch(files, url, replace(TEST_OPTIONS, reach=Reach()), own=False)
        assert "allow_networks" in caught.value.hint
        for file, reach in zip(
            files, (Reach(("http://127.0.0.1/",)), Reach((), ("127.0.0.0/8",))), strict=True
        ):
            options = replace(TEST_OPTIONS, reach=reach)
            assert down.fetch([file], url, options, own=False).complete


def test_no_redirection_leads_inside(upstream: Path, down: Downstream) -> None:
    """Though the URL itself is the administrator's."""
    files = put_many(upstream, 2, 10)
    with nginx(upstream) as inside:

        def lead(question: Request) -> Reply:
            return Reply("302 Found", (f"Location: {inside.url}{question.path}",))

        with scripted(lead) as outside:
            outcome = down.fetch(files, outside.url, replace(TEST_OPTIONS, reach=Reach()))
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
            options = replace(TEST_OPTIONS, reach=Reach())
            with suppress(TransferError):
                assert not down.fetch(files, "http://mirror.invalid/m", options, own=False).arrived
        assert inside.requests == []
        assert proxy.questions or without == "*"
