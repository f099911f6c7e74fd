"""Long answers and many clients: streamed, bounded, ended with their client, fair to others."""

import json
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from select import select

import pytest

from huai_server.http.settings import QUEUE
from tests.support.http_fixtures import (
    ENVIRONMENT,
    PACK_BYTES,
    SECONDS,
    CountingGit,
    Repository,
    Server,
    fetch_all,
    git,
    ls_refs,
    post,
    read_all,
    running,
    slow_client,
    status,
)
from tests.support.prepared import SOURCES
from tests.support.processes import is_running, until


@contextmanager
def begun(server: Server, repository: Repository) -> Iterator[socket.socket]:
    """A client that has read the first bytes of a large pack."""
    with slow_client(server) as connection:
        connection.sendall(post(fetch_all(repository.head())))
        assert status(connection.recv(1000)) == 200
        yield connection


def peak_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) << 10
    raise AssertionError(pid)


def test_a_client_that_leaves_takes_its_process_along(large: Repository, tmp_path: Path) -> None:
    with running(large.path.parent) as server:
        for _ in range(3):
            with begun(server, large):
                assert server.children()
            server.until_no_children()
        git("clone", "--quiet", "--bare", f"{server.url}/git/m.git", tmp_path / "clone")
        assert git("-C", tmp_path / "clone", "rev-parse", "main") == large.head()
        with begun(server, large) as slow:
            parts = []
            for _ in range(5):
                time.sleep(0.1)
                parts.append(slow.recv(1 << 20))
            answer = b"".join([*parts, read_all(slow)])
        assert len(answer) > PACK_BYTES
        assert answer.endswith(b"0000\r\n0\r\n\r\n")
        server.until_no_children()


def test_a_pack_never_stands_in_memory(large: Repository) -> None:
    with running(large.path.parent) as server:
        server.exchange(post(ls_refs()))
        before = peak_bytes(server.process.pid)
        with begun(server, large) as connection:
            assert len(read_all(connection)) > PACK_BYTES
        assert peak_bytes(server.process.pid) - before < PACK_BYTES // 3


def test_termination_lets_a_transfer_finish(large: Repository) -> None:
    with running(large.path.parent) as server, begun(server, large) as connection:
        server.process.send_signal(signal.SIGTERM)
        until(lambda: refuses_connections(server))
        answer = read_all(connection)
        assert len(answer) > PACK_BYTES
        assert answer.endswith(b"0000\r\n0\r\n\r\n")
        assert server.process.wait(60) == 0


def refuses_connections(server: Server) -> bool:
    try:
        server.connect().close()
    except ConnectionRefusedError:
        return True
    return False


def test_termination_waits_only_so_long(large: Repository) -> None:
    with running(large.path.parent, shutdown_grace=1) as server, begun(server, large):
        children = server.children()
        assert children
        assert server.stop() == 0
        until(lambda: not any(map(is_running, children)))


def test_enough_files_may_be_open(tmp_path: Path) -> None:
    """A connection may hold a file, and each second one a file of content twice."""
    program = [sys.executable, "-m", "tests.support.http_server"]
    command = ["sh", "-c", 'ulimit -Sn 300; exec "$@"', "sh", *program, str(tmp_path)]
    options = json.dumps({"max_connections": 1000, "max_subscribers": 0})
    environment = {**ENVIRONMENT, "PYTHONPATH": SOURCES}
    with subprocess.Popen([*command, options], env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        limit, _ = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        process.kill()
    assert limit >= 2500


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_ends_at_once(large: Repository, number: int) -> None:
    with running(large.path.parent) as server, server.connect():
        server.process.send_signal(number)
        assert server.process.wait(60) == 0


def test_beyond_the_queue_clients_are_told_to_come_back(large: Repository) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(running(large.path.parent, max_transfers=1))
        stack.enter_context(begun(server, large))
        fetch = fetch_all(large.head())
        clients = [stack.enter_context(server.connect()) for _ in range(QUEUE + 1)]
        for number, client in enumerate(clients):  # equal requests would share a slot
            client.sendall(post(fetch.replace(b"no-progress", b"%011d" % number)))
        [refused], _, _ = select(clients, [], [], SECONDS)
        answer = refused.recv(1 << 16)
        assert status(answer) == 503
        assert b"\r\nretry-after: " in answer
        # A poll does not queue behind packs.
        assert status(server.exchange(post(ls_refs()))) == 200


def test_waiting_in_the_queue_ends_too(large: Repository) -> None:
    with running(large.path.parent, max_transfers=1) as server:
        with begun(server, large), server.connect() as queued:
            queued.sendall(post(fetch_all(large.head()).replace(b"no-progress", b"include-tag")))
        # Both have left: nothing may start, or go on, for either.
        server.until_no_children()


def test_a_git_that_hangs_is_ended(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path, "m")
    repository.commit(b"first")
    stuck = CountingGit(tmp_path, "sleep 1000; true")
    with running(tmp_path, stuck.folder, request_timeout=1) as server:
        for answer in (server.exchange(post(ls_refs())), server.exchange(_advert())):
            assert status(answer) == 504
        server.until_no_children()


def test_a_git_that_fails_is_an_error_without_its_words(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path, "m")
    repository.commit(b"first")
    (repository.path / "config").write_text("[broken\n")
    with running(tmp_path) as server:
        answer = server.exchange(_advert())
        assert status(answer) == 500
        assert str(tmp_path).encode() not in answer


def test_a_git_that_fails_inside_its_answer_drops_the_connection(tmp_path: Path) -> None:
    """No client takes the part for all of it."""
    Repository.create(tmp_path, "m").commit(b"first")
    failing = CountingGit(tmp_path, "head -c 400000 /dev/zero; exit 3")
    with running(tmp_path, failing.folder) as server:
        answer = server.exchange(_advert())
        assert status(answer) == 200
        assert len(answer) > 300_000
        assert not answer.endswith(b"0\r\n\r\n")


def _advert() -> bytes:
    head = "GET /git/m.git/info/refs?service=git-upload-pack HTTP/1.1"
    return f"{head}\r\nHost: x\r\nConnection: close\r\n\r\n".encode()


def test_a_second_interrupt_ends_at_once(large: Repository) -> None:
    with running(large.path.parent, shutdown_grace=600) as server, begun(server, large):
        children = server.children()
        server.process.send_signal(signal.SIGINT)
        until(lambda: refuses_connections(server))
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 0
        until(lambda: not any(map(is_running, children)))


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


def test_clients_that_stop_or_trickle_are_dropped(large: Repository) -> None:
    with running(large.path.parent, request_timeout=1) as server:
        with begun(server, large) as idle:
            server.until_no_children()
            assert len(read_all(idle)) < PACK_BYTES
        with begun(server, large) as slow:
            got = 0
            for _ in range(16):
                got += len(slow.recv(1000))
                time.sleep(0.125)
            assert got + len(read_all(slow)) < PACK_BYTES
        with server.connect() as slow:
            slow.sendall(post(ls_refs(), length=1000))
            for _ in range(5):
                slow.sendall(b"0")
                time.sleep(0.125)
            assert status(read_all(slow)) == 408
