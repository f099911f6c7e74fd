"""Events of a running server: who is told of which commit, and who is not served any more."""

import json
import shutil
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.http_fixtures import Repository, Server, running, slow_client, status
from tests.support.nginx import nginx
from tests.support.processes import until

PATH = "/api/v1/events"
SECONDS = 60
OTHER = "127.0.0.2"
"""As good a client's address as any; only 127.0.0.1 is a trusted proxy."""


class Subscriber:
    """One connection, read event by event."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self._lines = answer.iter_lines()
        self.last = ""
        """The id of the last event."""

    def next(self) -> dict[str, Any]:
        """The next event, whatever comments stand before it."""
        found: dict[str, str] = {}
        for line in self._lines:
            name, _, value = line.partition(": ")
            if not line and "data" in found:
                self.last = found["id"]
                said = json.loads(found["data"])
                assert found["event"] == "commit"
                assert isinstance(said, dict)
                return said
            found[name] = value
        raise AssertionError("the answer is over")


@contextmanager
def subscribed(
    url: str,
    *modules: str,
    last: str = "",
    headers: dict[str, str] | None = None,
    verify: ssl.SSLContext | bool = True,
) -> Iterator[Subscriber]:
    more = {"Last-Event-ID": last} if last else {}
    with (
        httpx.Client(timeout=SECONDS, verify=verify) as client,
        client.stream(
            "GET",
            url + PATH,
            params={"module": list(modules)},
            headers={**more, **(headers or {})},
        ) as answer,
    ):
        assert answer.status_code == 200, answer.read()
        yield Subscriber(answer)


def test_each_commit_is_told_to_who_asked_for_its_module(
    repository: Repository, server: Server
) -> None:
    other = Repository.create(repository.path.parent, "other")
    with subscribed(server.url) as all_of_them, subscribed(server.url, "other", "later") as some:
        assert all_of_them.answer.headers["content-type"].startswith("text/event-stream")
        assert all_of_them.answer.headers["cache-control"] == "no-store"
        assert all_of_them.answer.headers["x-accel-buffering"] == "no"
        first = all_of_them.next()
        assert (first["module"], first["serial"]) == ("m", 1)
        assert first["commit"] == repository.head()
        other.commit(b"text")
        told = some.next()
        assert (told["module"], told["serial"], told["commit"]) == ("other", 1, other.head())
        assert all_of_them.next() == told
        repository.commit(b"more")
        assert all_of_them.next()["commit"] == repository.head()
        later = Repository.create(repository.path.parent, "later")
        later.commit(b"text")
        assert some.next()["module"] == "later"


def test_what_was_committed_between_two_connections_comes_first(
    repository: Repository, server: Server
) -> None:
    Repository.create(repository.path.parent, "other").commit(b"text")
    with subscribed(server.url) as before:
        assert {before.next()["module"], before.next()["module"]} == {"m", "other"}
    for _ in range(2):
        repository.commit(b"more")
    with subscribed(server.url, last=before.last) as after:
        assert (after.next()["module"], after.last != before.last) == ("m", True)
        repository.commit(b"more")
        assert after.next()["serial"] == 4
    # The number of another start of the server means nothing.
    with subscribed(server.url, last="0123456789abcdef-1") as anew:
        assert {anew.next()["module"], anew.next()["module"]} == {"m", "other"}


def test_a_module_that_is_removed_is_told_of_no_more(
    repository: Repository, server: Server
) -> None:
    other = Repository.create(repository.path.parent, "other")
    with subscribed(server.url) as held:
        assert held.next()["module"] == "m"
        other.commit(b"text")
        assert held.next()["module"] == "other"
        shutil.rmtree(other.path)
        until(lambda: _heads(server) == {"m"})
        with subscribed(server.url) as after:
            assert after.next()["module"] == "m"
            repository.commit(b"more")
            assert after.next()["serial"] == held.next()["serial"] == 2


def _heads(server: Server) -> set[str]:
    """Of which modules a new subscriber hears first."""
    with server.connect() as connection:
        connection.sendall(f"GET {PATH} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        text = connection.recv(1 << 16)
        while b'"module"' not in text:
            text += connection.recv(1 << 16)
    return {name for name in ("m", "other") if f'"module": "{name}"'.encode() in text}


def test_a_proxy_that_buffers_passes_events_on(repository: Repository, server: Server) -> None:
    location = f"proxy_pass {server.url}; proxy_buffering on; proxy_http_version 1.1;"
    with (
        nginx(repository.path.parent, location=location) as proxy,
        subscribed(proxy.url, "m") as through,
    ):
        assert through.next()["serial"] == 1
        repository.commit(b"more")
        assert through.next()["serial"] == 2


def test_a_signal_ends_all_answers_within_the_grace(repository: Repository) -> None:
    with running(repository.path.parent, shutdown_grace=50) as server, ExitStack() as stack:
        all_of_them = [stack.enter_context(subscribed(server.url)) for _ in range(3)]
        for each in all_of_them:
            each.next()
        server.process.send_signal(signal.SIGTERM)
        for each in all_of_them:
            assert not any(list(each._lines))  # ended in order: otherwise this raises
        assert server.process.wait(SECONDS) == 0


def test_subscribers_have_places_of_their_own(repository: Repository) -> None:
    """They count neither among the connections, nor those among them."""
    with (
        running(
            repository.path.parent,
            max_connections=4,
            max_connections_per_address=2,
            max_subscribers=3,
        ) as server,
        ExitStack() as stack,
    ):
        ask = f"GET {PATH} HTTP/1.1\r\nHost: test\r\n\r\n".encode()
        there = []
        for source, wanted in ((OTHER, 200), (OTHER, 200), (OTHER, 503), ("127.0.0.3", 200)):
            each = stack.enter_context(slow_client(server, source))
            each.sendall(ask)
            assert status(each.recv(1000)) == wanted
            there.append(each)
        with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
            refused = client.get(PATH)
            assert (refused.status_code, int(refused.headers["retry-after"]) > 0) == (503, True)
            assert client.get("/healthz").status_code == 200
        there[0].close()
        until(lambda: _is_served(server, ask))


def _is_served(server: Server, ask: bytes) -> bool:
    with slow_client(server, OTHER) as connection:
        connection.sendall(ask)
        return status(connection.recv(1000)) == 200


@pytest.mark.parametrize(
    ("request_line", "wanted"),
    [
        ("POST /api/v1/events", 405),
        ("HEAD /api/v1/events", 200),
        (f"GET /api/v1/events?module={'m' * 9000}", 414),
        ("GET /api/v1/events?module=%00%ff&module=../..&=&", 200),
        ("GET /api/v1/events/", 404),
    ],
)
def test_odd_requests(server: Server, request_line: str, wanted: int) -> None:
    with server.connect() as connection:
        connection.sendall(
            f"{request_line} HTTP/1.1\r\nHost: test\r\nLast-Event-ID: {'9' * 100}\r\n"
            "Content-Length: 0\r\n\r\n".encode()
        )
        assert status(connection.recv(1000)) == wanted


def test_who_reads_nothing_is_dropped(repository: Repository) -> None:
    """All of many modules have the same repository here, and a commit makes as many events."""
    for number in range(30):
        made = repository.path.parent / f"module-{number}{'-' * 200}.git"
        made.mkdir()
        for each in repository.path.iterdir():
            (made / each.name).symlink_to(each)
    with running(repository.path.parent, request_timeout=2) as server, ExitStack() as stack:
        deaf = stack.enter_context(socket.socket())
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 11)
        deaf.settimeout(SECONDS)
        deaf.connect(("127.0.0.1", server.port))
        deaf.sendall(f"GET {PATH} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        count = f"/proc/{server.process.pid}/fd"
        with subscribed(server.url, "m") as there:
            assert there.next()["serial"] == 1
            before = _sockets(count)
            until(lambda: bool(repository.commit(b"x")) and _sockets(count) < before)
            assert there.next()["serial"] > 1


def _sockets(folder: str) -> int:
    found = 0
    for handle in Path(folder).iterdir():
        try:
            found += handle.readlink().name.startswith("socket:")
        except OSError:
            continue
    return found
