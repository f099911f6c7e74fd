"""Many clients that mean no good, or are only slow: others are served all the same."""

import time
from contextlib import ExitStack

import pytest

from tests.support.http_fixtures import (
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


def distinct(repository: Repository, number: int) -> bytes:
    """A request that git answers like all others, with a fingerprint of its own."""
    body = fetch_all(repository.head())
    have = f"have {number:040x}\n".encode()
    return body.replace(b"0009done\n", b"%04x" % (len(have) + 4) + have + b"0009done\n")


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
        held = [stack.enter_context(slow_client(server, OTHER)) for _ in range(10)]
        with slow_client(server, OTHER) as more:
            assert read_all(more) == b""
        assert status(server.exchange(post(ls_refs()))) == 200
        held.pop().close()
        until(lambda: answers(server, OTHER))


def answers(server: Server, source: str) -> bool:
    with slow_client(server, source) as connection:
        connection.sendall(post(ls_refs()))
        return read_all(connection).startswith(b"HTTP/1.1 200")


def test_clients_that_read_nothing_hold_no_transfer(large: Repository) -> None:
    with running(large.path.parent, max_transfers=2) as server, ExitStack() as stack:
        idle = [stack.enter_context(slow_client(server)) for _ in range(4)]
        for number, each in enumerate(idle):
            each.sendall(post(distinct(large, number)))
            assert status(each.recv(1000)) == 200
        server.until_no_children()
        assert len(server.exchange(post(fetch_all(large.head())))) > PACK_BYTES
        assert len(read_all(idle[0])) > PACK_BYTES


@pytest.mark.parametrize(
    ("source", "forwarded"), [(OTHER, "192.0.2.{}"), ("127.0.0.1", "192.0.2.{}, 192.0.2.77")]
)
def test_one_address_cannot_have_all_transfers(
    large: Repository, source: str, forwarded: str
) -> None:
    """Without a spool, so that a transfer is as slow as its reader."""
    with (
        running(large.path.parent, max_transfers=2, spool_bytes=0) as server,
        ExitStack() as stack,
    ):
        for number in range(3):
            header = "X-Forwarded-For: " + forwarded.format(number)
            idle = stack.enter_context(slow_client(server, source))
            idle.sendall(post(distinct(large, number), header))
        until(lambda: len(server.children()) > 0)
        assert len(server.exchange(post(fetch_all(large.head())))) > PACK_BYTES


@pytest.mark.parametrize("spool_bytes", [0, 4 << 20, 1 << 30])
def test_a_slow_reader_gets_all_of_it(large: Repository, spool_bytes: int) -> None:
    with (
        running(large.path.parent, spool_bytes=spool_bytes, cache_bytes=0) as server,
        slow_client(server) as slow,
    ):
        slow.sendall(post(fetch_all(large.head())))
        parts = [slow.recv(1000)]
        for _ in range(5):
            time.sleep(0.1)
            parts.append(slow.recv(1 << 20))
        answer = b"".join([*parts, read_all(slow)])
        assert len(answer) > PACK_BYTES
        assert answer.endswith(b"0000\r\n0\r\n\r\n")


def test_without_a_folder_to_spool_in_answers_come_all_the_same(large: Repository) -> None:
    with running(large.path.parent, spool_folder="/nonexistent") as server:
        assert len(server.exchange(post(fetch_all(large.head())))) > PACK_BYTES


def test_a_trickle_ends_an_answer(large: Repository) -> None:
    with running(large.path.parent, request_timeout=0.5) as server, slow_client(server) as slow:
        slow.sendall(post(fetch_all(large.head())))
        got = 0
        for _ in range(16):
            got += len(slow.recv(1000))
            time.sleep(0.125)
        assert got + len(read_all(slow)) < PACK_BYTES


def test_a_body_that_trickles_is_refused(large: Repository) -> None:
    with running(large.path.parent, request_timeout=0.5) as server, server.connect() as slow:
        slow.sendall(post(ls_refs(), length=1000))
        for _ in range(5):
            slow.sendall(b"0")
            time.sleep(0.125)
        assert status(read_all(slow)) == 408
