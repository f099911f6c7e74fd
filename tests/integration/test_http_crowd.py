"""Many clients that mean no good, or are only slow: others are served all the same."""

import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.http_fixtures import (
    ENVIRONMENT,
    PACK_BYTES,
    Repository,
    Server,
    fetch_all,
    ls_refs,
    post,
    read_all,
    running,
    slow_client,
    status,
)
from tests.support.processes import until

OTHER = "127.0.0.2"
"""As good a client's address as any; only 127.0.0.1 is a trusted proxy."""


@pytest.mark.parametrize("begin", [b"GET /healthz HT", b"", post(ls_refs(), length=1000)])
def test_half_a_request_keeps_nobody_out(large: Repository, begin: bytes) -> None:
    with running(large.path.parent, max_connections=100) as server, ExitStack() as stack:
        for _ in range(205):
            stack.enter_context(slow_client(server)).sendall(begin)
        for _ in range(3):
            assert status(server.exchange(post(ls_refs()))) == 200


def test_one_address_cannot_have_all_connections(large: Repository) -> None:
    with (
        running(large.path.parent, max_connections=100, max_connections_per_address=10) as server,
        ExitStack() as stack,
    ):
        connections = [stack.enter_context(slow_client(server, OTHER)) for _ in range(10)]
        with slow_client(server, OTHER) as more:
            assert read_all(more) == b""
        assert status(server.exchange(post(ls_refs()))) == 200
        connections.pop().close()
        until(lambda: answers(server, OTHER))


def answers(server: Server, source: str) -> bool:
    with slow_client(server, source) as connection:
        connection.sendall(post(ls_refs()))
        return read_all(connection).startswith(b"HTTP/1.1 200")


def test_clients_that_read_nothing_lose_their_transfers(large: Repository) -> None:
    with (
        running(large.path.parent, max_transfers=2, request_timeout=2) as server,
        ExitStack() as stack,
    ):
        idle = [stack.enter_context(slow_client(server)) for _ in range(2)]
        for client in idle:
            client.sendall(post(fetch_all(large.head())))
        until(lambda: len(server.exchange(post(fetch_all(large.head())))) > PACK_BYTES)
        assert all(len(read_all(client)) < PACK_BYTES for client in idle)


@pytest.mark.parametrize(
    ("source", "forwarded"), [(OTHER, "192.0.2.{}"), ("127.0.0.1", "192.0.2.{}, 192.0.2.77")]
)
def test_one_address_cannot_have_all_transfers(
    large: Repository, source: str, forwarded: str
) -> None:
    """A transfer is as slow as its reader."""
    with running(large.path.parent, max_transfers=2) as server, ExitStack() as stack:
        for number in range(3):
            header = "X-Forwarded-For: " + forwarded.format(number)
            idle = stack.enter_context(slow_client(server, source))
            idle.sendall(post(fetch_all(large.head()), header))
        until(lambda: len(server.children()) > 0)
        assert len(server.exchange(post(fetch_all(large.head())))) > PACK_BYTES


def test_a_slow_reader_gets_all_of_it(large: Repository) -> None:
    with running(large.path.parent) as server, slow_client(server) as slow:
        slow.sendall(post(fetch_all(large.head())))
        parts = [slow.recv(1000)]
        for _ in range(5):
            time.sleep(0.1)
            parts.append(slow.recv(1 << 20))
        answer = b"".join([*parts, read_all(slow)])
        assert len(answer) > PACK_BYTES
        assert answer.endswith(b"0000\r\n0\r\n\r\n")


def test_many_clones_at_once_run_few_processes(large: Repository, tmp_path: Path) -> None:
    """They wait in the queue: none fails."""
    with running(large.path.parent, max_transfers=2) as server:
        clones = [
            subprocess.Popen(
                ["git", "clone", "--quiet", "--bare", f"{server.url}/git/m.git", tmp_path / name],
                env=ENVIRONMENT,
            )
            for name in map(str, range(6))
        ]
        most = 0
        while any(clone.poll() is None for clone in clones):
            most = max(most, len(processes_of(server)))
            time.sleep(0.01)
        assert [clone.returncode for clone in clones] == [0] * 6
        assert 0 < most <= 4, "as many for refs as for packs"
        server.until_no_children()


def processes_of(server: Server) -> set[int]:
    """The processes that the server itself started."""
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text()
    return set(map(int, children.split()))


def test_a_trickle_ends_an_answer(large: Repository) -> None:
    with running(large.path.parent, request_timeout=1) as server, slow_client(server) as slow:
        slow.sendall(post(fetch_all(large.head())))
        got = 0
        for _ in range(16):
            got += len(slow.recv(1000))
            time.sleep(0.125)
        assert got + len(read_all(slow)) < PACK_BYTES


def test_a_body_that_trickles_is_refused(large: Repository) -> None:
    with running(large.path.parent, request_timeout=1) as server, server.connect() as slow:
        slow.sendall(post(ls_refs(), length=1000))
        for _ in range(5):
            slow.sendall(b"0")
            time.sleep(0.125)
        assert status(read_all(slow)) == 408
