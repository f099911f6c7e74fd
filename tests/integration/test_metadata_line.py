"""Two questions on one connection, if the other side lets it stay; else on two."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from huai_client.metadata.http import (
    MetadataUrl,
    Request,
    UpstreamDownError,
    UpstreamTimeoutError,
    send,
)
from huai_client.metadata.newest import Newest, find_newest
from huai_schema.codec.static_files import StaticFile
from tests.support.listening import listening
from tests.support.scripted_upstream import static_head

HEAD = static_head("1" * 40, StaticFile(9, bytes(32)))
PACK = b"PACK and more"
SECONDS = 5


class Upstream:
    """A server of scripted responses: for each connection one after the other."""

    def __init__(self, *connections: list[bytes]) -> None:
        self._connections = list(connections)
        self.methods: list[list[bytes]] = []
        """The methods of the requests on each connection."""
        self.url = MetadataUrl("")

    @contextmanager
    def served(self) -> Iterator["Upstream"]:
        with listening(self._serve_client) as port:
            self.url = MetadataUrl(f"http://127.0.0.1:{port}/m.git")
            yield self

    def _serve_client(self, client: socket.socket) -> None:
        methods: list[bytes] = []
        self.methods.append(methods)
        with client:
            client.settimeout(SECONDS)
            for answer in self._connections.pop(0):
                methods.append(client.recv(1 << 16).split()[0])
                client.sendall(answer)


def respond(body: bytes, *headers: bytes, version: bytes = b"1.1") -> bytes:
    length = b"Content-Length: %d" % len(body)
    lines = [b"HTTP/%b 200 OK" % version, length, *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (
    len(HEAD),
    HEAD,
)


def fetched(newest: Newest, *, timeout: float = SECONDS) -> bytes:
    """The pack that comes for the newest commit."""
    with send(newest.url, Request("static/packs/1.pack"), timeout=timeout) as response:
        return response.read_all(1000)


def test_the_second_question_follows_on_the_same_connection() -> None:
    for first in (respond(HEAD), CHUNKED):
        with Upstream([first, respond(PACK)]).served() as up:
            assert fetched(find_newest(up.url)) == PACK
        assert up.methods == [[b"GET", b"GET"]]


def test_a_connection_that_does_not_stay_is_not_asked_again() -> None:
    for first in (
        respond(HEAD, b"Connection: Close"),
        respond(HEAD, b"Connection: TE, close"),
        respond(HEAD, version=b"1.0"),
        b"HTTP/1.1 200 OK\r\n\r\n" + HEAD,
    ):
        with Upstream([first], [respond(PACK)]).served() as up:
            newest = find_newest(up.url)
            assert fetched(newest) == PACK
        assert up.methods == [[b"GET"], [b"GET"]]


@pytest.mark.parametrize("late", [[], [b""]])
def test_a_connection_that_was_closed_meanwhile_costs_another_one(late: list[bytes]) -> None:
    with Upstream([respond(HEAD), *late], [respond(PACK)]).served() as up:
        newest = find_newest(up.url)
        assert fetched(newest) == PACK
    assert [methods[-1] for methods in up.methods][-1] == b"GET"
    assert len(up.methods) == 2


def test_an_answer_that_began_is_not_asked_for_again() -> None:
    with Upstream([respond(HEAD), respond(PACK)[:-10]]).served() as up:
        newest = find_newest(up.url)
        with pytest.raises(UpstreamDownError):
            fetched(newest)
    assert len(up.methods) == 1


def test_another_host_has_its_own_connection() -> None:
    with Upstream([respond(HEAD)]).served() as one, Upstream([respond(PACK)]).served() as other:
        newest = find_newest(one.url)
        assert fetched(replace(newest, url=other.url)) == PACK
    assert (one.methods, other.methods) == ([[b"GET"]], [[b"GET"]])


def test_each_question_has_its_own_patience() -> None:
    def serve_client(client: socket.socket) -> None:
        with client:
            client.recv(1 << 16)
            client.sendall(respond(HEAD))
            client.recv(1 << 16)
            client.recv(1)  # nothing comes until the other side gives up

    with listening(serve_client) as port:
        newest = find_newest(MetadataUrl(f"http://127.0.0.1:{port}/m.git"), timeout=SECONDS)
        with pytest.raises(UpstreamTimeoutError):
            fetched(newest, timeout=0.2)
