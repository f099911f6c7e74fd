"""Hostile requests: each gets a clear refusal, and the server goes on."""

import gzip
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from huai_server.http.settings import MAX_BODY
from tests.support.http_fixtures import (
    CountingGit,
    Repository,
    Server,
    ls_refs,
    packet,
    post,
    read_all,
    running,
    status,
)

GZIP = "Content-Encoding: gzip"


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> CountingGit:
    return CountingGit(tmp_path_factory.mktemp("counting"))


@pytest.fixture(scope="module")
def running_server(
    tmp_path_factory: pytest.TempPathFactory, counting: CountingGit
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    Repository.create(folder, "m").commit(b"first")
    with running(folder, counting.folder, request_timeout=2) as started:
        yield started


@pytest.fixture
def streaming(running_server: Server) -> Iterator[Server]:
    """The server, which after the test still answers and has no child.

    A body beyond 64 KiB is fed to git while it arrives, so git may have begun before it is refused.
    """
    yield running_server
    assert status(running_server.exchange(post(ls_refs()))) == 200
    running_server.until_no_children()


@pytest.fixture
def server(streaming: Server, counting: CountingGit) -> Iterator[Server]:
    """The same, and it ran git for none of what the test asked."""
    before = counting.starts()
    yield streaming
    assert counting.starts() == before


def get(target: str, *headers: str, method: str = "GET") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: test", "Connection: close", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def test_addresses_lead_nowhere_else(server: Server) -> None:
    for target in (
        "/git/../../../etc/passwd",
        "/git/%2e%2e/%2e%2e/m.git/info/refs?service=git-upload-pack",
        "/git/../m.git/info/refs?service=git-upload-pack",
        "/git//m.git/info/refs?service=git-upload-pack",
        "/git/m%00.git/info/refs?service=git-upload-pack",
        "/git/m.git%00/info/refs?service=git-upload-pack",
        "/git/m.git/../m.git/info/refs?service=git-upload-pack",
        "/git/m.git/info/refs/?service=git-upload-pack",
        "/git/m/info/refs?service=git-upload-pack",
        "/git/-c.git/info/refs?service=git-upload-pack",
        "/git/--upload-pack=x.git/info/refs?service=git-upload-pack",
        "/git/.git/info/refs?service=git-upload-pack",
        "/git/m.git/config",
        "/git/m.git/",
        "/git/m.git",
        "/git/",
        "/git/%ff%fe.git/info/refs?service=git-upload-pack",
        "/git/" + "a" * 20_000 + ".git/info/refs?service=git-upload-pack",
    ):
        answer = server.exchange(get(target))
        assert status(answer) in {400, 404}, target
        assert b"root:" not in answer


def test_other_services_are_refused(server: Server) -> None:
    for target, method, expected in (
        ("/git/m.git/info/refs?service=git-receive-pack", "GET", 403),
        ("/git/m.git/info/refs?service=git-upload-archive", "GET", 403),
        ("/git/m.git/info/refs?service=git-upload-pack&service=x", "GET", 403),
        ("/git/m.git/info/refs?service=git-upload-pack" + "&a=b" * 20, "GET", 403),
        ("/git/m.git/info/refs", "GET", 403),
        ("/git/m.git/HEAD", "GET", 403),
        ("/git/m.git/objects/info/packs", "GET", 403),
        ("/git/m.git/git-receive-pack", "POST", 403),
        ("/git/m.git/git-upload-pack", "GET", 405),
        ("/git/m.git/info/refs?service=git-upload-pack", "DELETE", 405),
        ("/git/m.git/git-upload-archive", "POST", 404),
    ):
        answer = server.exchange(get(target, method=method))
        assert status(answer) == expected, target
        assert b"huai: " in answer


def test_broken_framing(streaming: Server) -> None:
    """Git refuses it; its words, which may hold paths, are not sent."""
    for body in (
        b"",
        b"zzzz",
        b"0003",
        b"-001",
        b" 001",
        b"00",
        b"0010short",
        b"fff5" + b"x" * 65_521,
        b"ffff" + b"x" * 65_531,
        packet(b"command=ls-refs") + b"\0\0\0\0",
        ls_refs().replace(b"ls-refs", b"no-refs"),
    ):
        answer = streaming.exchange(post(body))
        assert status(answer) == 400, body
        assert b"m.git" not in answer


def test_bad_bodies(server: Server) -> None:
    for body, headers, expected in (
        (ls_refs(), ["Content-Type: text/plain"], 415),
        (ls_refs(), ["Content-Encoding: br"], 415),
        (b"x" * (MAX_BODY + 1), [], 413),
        (gzip.compress(ls_refs())[:-9], [GZIP], 400),
        (gzip.compress(ls_refs())[:5], [GZIP], 400),
        (b"\x1f\x8b" + b"x" * 100, [GZIP], 400),
        (gzip.compress(ls_refs()) + b"more", [GZIP], 400),
    ):
        answer = server.exchange(post(body, *headers))
        assert status(answer) == expected, (body[:20], headers)


def test_requests_for_listing_hashes(server: Server) -> None:
    for body, expected in (
        (b"", 200),
        (b"00" * 20, 200),  # no such tree
        (b"0", 400),
        (b"\xff\xfe", 400),
        (b"\n" * ((1 << 20) + 1), 413),
    ):
        request = post(body).replace(b"git-upload-pack", b"listing-hashes", 1)
        assert status(server.exchange(request)) == expected, body[:20]


def test_a_length_beyond_the_limit_is_refused_unread(server: Server) -> None:
    with server.connect() as connection:
        connection.sendall(post(b"", length=1 << 40))
        assert status(connection.recv(1 << 16)) == 413


def endless(count: int) -> bytes:
    """A request that git goes on reading, because its end never comes."""
    return ls_refs()[:-4] + packet(b"ref-prefix refs/heads/\n") * count


def test_a_bomb(streaming: Server) -> None:
    data = endless(MAX_BODY // 20)
    assert status(streaming.exchange(post(gzip.compress(data), GZIP))) == 413
    head = post(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    answer = streaming.exchange(head + b"%x\r\n" % len(data) + data + b"\r\n0\r\n\r\n")
    assert status(answer) == 413


def test_a_long_request_that_git_does_not_read_to_its_end(streaming: Server) -> None:
    # git ends at the first flush: what comes after it must not be taken for our own fault.
    answers = []
    for _ in range(20):
        with suppress(ConnectionResetError):  # answered before all of the request was sent
            answers.append(streaming.exchange(post(b"0000" * (MAX_BODY // 4))))
    assert answers
    assert {*map(status, answers)} <= {200, 400}


def test_half_a_body_and_goodbye(server: Server) -> None:
    for _ in range(5):
        with server.connect() as connection:
            connection.sendall(post(ls_refs(), length=1000))
    answer = server.exchange(post(ls_refs(), length=1000))
    assert status(answer) == 408


def test_silence_before_and_inside_the_head(server: Server) -> None:
    for start in (b"", b"GET /healthz HT", b"\r\n"):
        assert server.exchange(start) == b""
    with server.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert status(connection.recv(1 << 16)) == 200
        connection.sendall(b"GET /hea")
        assert b"HTTP/1.1" not in read_all(connection)


def test_a_head_without_end(server: Server) -> None:
    with server.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        with pytest.raises(ConnectionError):
            connection.sendall((b"X: " + b"y" * 8000 + b"\r\n") * 10_000)


def test_pipelined_requests(server: Server, subtests: pytest.Subtests) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    with subtests.test("as many as apt sends"):
        answer = server.exchange(request * 10 + get("/healthz"))
        assert answer.count(b"HTTP/1.1 200") == 11
    with subtests.test("too many"):
        assert server.exchange(request * 1000).count(b"HTTP/1.1 200") < 1000
    with subtests.test("a head without end behind an endless response"), server.connect() as one:
        one.sendall(request.replace(b"/healthz", b"/api/v1/events"))
        assert status(one.recv(1 << 16)) == 200
        one.sendall(b"GET /healthz HTTP/1.1\r\n")
        with pytest.raises(ConnectionError):
            one.sendall((b"X: " + b"y" * 8000 + b"\r\n") * 10_000)


def test_strange_protocol_headers_are_version_0(running_server: Server) -> None:
    for protocol in (
        "version=2; rm -rf /",
        "version=99999999999999999999",
        "version=",
        "x" * 9000,
        "version=2\t;",
    ):
        target = "/git/m.git/info/refs?service=git-upload-pack"
        answer = running_server.exchange(get(target, f"Git-Protocol: {protocol}"))
        assert status(answer) == 200
        assert b"# service=git-upload-pack" in answer
