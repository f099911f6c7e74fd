"""Events of a running server: which subscriber gets which commit, and which one is dropped."""

import json
import shutil
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from tests.support.http_fixtures import Repository, Server, running, slow_client, status
from tests.support.nginx import nginx
from tests.support.processes import open_paths, until

PATH = "/api/v1/events"
REQUEST = f"GET {PATH} HTTP/1.1\r\nHost: test\r\n\r\n".encode()
SECONDS = 60
OTHER = "127.0.0.2"
"""The address of a client; only 127.0.0.1 is a trusted proxy."""


class Subscriber:
    """One connection, read event by event."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self._lines = answer.iter_lines()
        self.last = ""
        """The id of the last event."""

    def next(self) -> dict[str, Any]:
        """Return the next event; comments before it are left out."""
        fields: dict[str, str] = {}
        for line in self._lines:
            name, _, value = line.partition(": ")
            if not line and "data" in fields:
                self.last = fields["id"]
                event = json.loads(fields["data"])
                assert fields["event"] == "commit"
                assert isinstance(event, dict)
                return event
            fields[name] = value
        raise AssertionError("the answer is over")

    def modules(self, count: int) -> set[str]:
        return {self.next()["module"] for _ in range(count)}

    def assert_over(self) -> None:
        """Read to the end; it raises if the answer is cut."""
        assert not any(list(self._lines))


@contextmanager
def subscribed(
    url: str,
    *modules: str,
    last: str = "",
    headers: dict[str, str] | None = None,
    verify: ssl.SSLContext | bool = True,
) -> Iterator[Subscriber]:
    more = {"Last-Event-ID": last} if last else {}
    parameters = {"module": list(modules)}
    with (
        httpx.Client(timeout=SECONDS, verify=verify, headers={**more, **(headers or {})}) as client,
        client.stream("GET", url + PATH, params=parameters) as answer,
    ):
        assert answer.status_code == 200, answer.read()
        yield Subscriber(answer)


@pytest.fixture
def other(repository: Repository) -> Repository:
    return Repository.create(repository.path.parent, "other")


def test_each_commit_is_sent_to_the_subscribers_of_its_module(
    repository: Repository, other: Repository, server: Server
) -> None:
    with subscribed(server.url) as every, subscribed(server.url, "other", "later") as some:
        assert every.answer.headers["content-type"].startswith("text/event-stream")
        assert every.answer.headers["cache-control"] == "no-store"
        assert every.answer.headers["x-accel-buffering"] == "no"
        first = every.next()
        assert (first["module"], first["serial"]) == ("m", 1)
        assert first["commit"] == repository.head()
        other.commit(b"text")
        event = some.next()
        assert (event["module"], event["serial"], event["commit"]) == ("other", 1, other.head())
        assert every.next() == event
        repository.commit(b"more")
        assert every.next()["commit"] == repository.head()
        Repository.create(repository.path.parent, "later").commit(b"text")
        assert some.next()["module"] == "later"


def test_commits_between_two_connections_come_first(
    repository: Repository, other: Repository, server: Server
) -> None:
    other.commit(b"text")
    with subscribed(server.url) as before:
        assert before.modules(2) == {"m", "other"}
    for _ in range(2):
        repository.commit(b"more")
    with subscribed(server.url, last=before.last) as after:
        assert (after.next()["module"], after.last != before.last) == ("m", True)
        repository.commit(b"more")
        assert after.next()["serial"] == 4
    # The number of another start of the server means nothing.
    with subscribed(server.url, last="0123456789abcdef-1") as subscriber:
        assert subscriber.modules(2) == {"m", "other"}


def test_a_module_that_is_removed_has_no_more_events(
    repository: Repository, other: Repository, server: Server
) -> None:
    with subscribed(server.url) as before:
        assert before.next()["module"] == "m"
        other.commit(b"text")
        assert before.next()["module"] == "other"
        shutil.rmtree(other.path)
        until(lambda: read_modules(server) == {"m"})
        with subscribed(server.url) as after:
            assert after.next()["module"] == "m"
            repository.commit(b"more")
            assert after.next()["serial"] == before.next()["serial"] == 2


def read_modules(server: Server) -> set[str]:
    """Return the modules of the first events that a new subscriber gets."""
    with server.connect() as connection:
        connection.sendall(REQUEST)
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
        subscribers = [stack.enter_context(subscribed(server.url)) for _ in range(3)]
        for subscriber in subscribers:
            subscriber.next()
        server.process.send_signal(signal.SIGTERM)
        for subscriber in subscribers:
            subscriber.assert_over()
        assert server.process.wait(SECONDS) == 0


def test_subscribers_do_not_count_among_the_connections(repository: Repository) -> None:
    """Nor do connections count among them."""
    limits: dict[str, Any] = {
        "max_connections": 4,
        "max_connections_per_address": 2,
        "max_subscribers": 3,
    }
    with running(repository.path.parent, **limits) as server, ExitStack() as stack:
        clients = []
        for source, code in ((OTHER, 200), (OTHER, 200), (OTHER, 503), ("127.0.0.3", 200)):
            client = stack.enter_context(slow_client(server, source))
            client.sendall(REQUEST)
            assert status(client.recv(1000)) == code
            clients.append(client)
        with httpx.Client(base_url=server.url, timeout=SECONDS) as http:
            refused = http.get(PATH)
            assert (refused.status_code, int(refused.headers["retry-after"]) > 0) == (503, True)
            assert http.get("/healthz").status_code == 200
        clients[0].close()
        until(lambda: is_served(server))


def is_served(server: Server) -> bool:
    with slow_client(server, OTHER) as connection:
        connection.sendall(REQUEST)
        return status(connection.recv(1000)) == 200


def test_odd_requests(server: Server, subtests: pytest.Subtests) -> None:
    for line, code in [
        ("POST /api/v1/events", 405),
        ("HEAD /api/v1/events", 200),
        (f"GET /api/v1/events?module={'m' * 9000}", 414),
        ("GET /api/v1/events?module=%00%ff&module=../..&=&", 200),
        ("GET /api/v1/events/", 404),
    ]:
        headers = f"Host: test\r\nLast-Event-ID: {'9' * 100}\r\nContent-Length: 0"
        with subtests.test(line[:60]), server.connect() as connection:
            connection.sendall(f"{line} HTTP/1.1\r\n{headers}\r\n\r\n".encode())
            assert status(connection.recv(1000)) == code


def test_a_subscriber_that_does_not_read_is_dropped(repository: Repository) -> None:
    """All of many modules have the same repository here, and a commit makes as many events."""
    for number in range(30):
        module = repository.path.parent / f"module-{number}{'-' * 200}.git"
        module.mkdir()
        for path in repository.path.iterdir():
            (module / path.name).symlink_to(path)
    with running(repository.path.parent, request_timeout=2) as server, ExitStack() as stack:
        deaf = stack.enter_context(socket.socket())
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 11)
        deaf.settimeout(SECONDS)
        deaf.connect(("127.0.0.1", server.port))
        deaf.sendall(REQUEST)
        with subscribed(server.url, "m") as subscriber:
            assert subscriber.next()["serial"] == 1
            before = count_sockets(server)
            until(lambda: bool(repository.commit(b"x")) and count_sockets(server) < before)
            assert subscriber.next()["serial"] > 1


def count_sockets(server: Server) -> int:
    paths = open_paths(server.process.pid)
    return sum(path.startswith("socket:") for path in paths)
