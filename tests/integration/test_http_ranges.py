"""Ranges of one file from a web server, several at a time: those bytes, at their places."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from huai_client.transfer import TransferError, TransferOptions, UpstreamRefusedError
from huai_client.transfer.errors import (
    ConnectionBrokenError,
    NoRangesError,
    UpstreamFullError,
    WrongContentError,
)
from huai_client.transfer.http.connect import connections_to
from huai_client.transfer.http.ranges import Span, fetch_ranges
from huai_client.transfer.limits import Grant
from huai_client.transfer.urls import ContentUrl
from huai_schema.entries import File
from tests.support.certificate import make_certificate
from tests.support.nginx import nginx
from tests.support.scripted_http import Question, Reply, scripted
from tests.support.transfers import TEST_OPTIONS, put
from tests.support.weak_network import Weakness, weak

SIZE = 3_000_000
CONTENT = os.urandom(SIZE)
SPANS = [Span(0, 1), Span(5, 100_000), Span(1 << 20, 2 << 20), Span(SIZE - 70_000, SIZE)]


@pytest.fixture(name="file")
def file_of_the_upstream(upstream: Path) -> File:
    return put(upstream, b"d/large file", CONTENT)


class Patched:
    """An open file that the spans are written to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written: list[tuple[int, int]] = []
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)

    def write(self, position: int, data: bytes) -> None:
        self.written.append((position, position + len(data)))
        os.pwrite(self._handle, data, position)

    def close(self) -> None:
        os.close(self._handle)

    def prove(self, spans: Sequence[Span]) -> None:
        content = self.path.read_bytes()
        for first, end in spans:
            assert content[first:end] == CONTENT[first:end]
        for first, end in self.written:
            assert any(span.first <= first and end <= span.end for span in spans)


@pytest.fixture(name="patched")
def patched_file(tmp_path: Path) -> Iterator[Patched]:
    patched = Patched(tmp_path / "patched")
    yield patched
    patched.close()


class Wanted:
    """A `Piece`."""

    def __init__(self, span: Span, write: Callable[[int, bytes], None]) -> None:
        self.span = span
        self.write = write
        self.is_here = False

    def came(self) -> None:
        self.is_here = True


def ask(
    url: str,
    file: File,
    write: Callable[[int, bytes], None],
    spans: Sequence[Span] = SPANS,
    options: TransferOptions = TEST_OPTIONS,
) -> TransferError | None:
    parsed = ContentUrl.parse(url)._replace(own=True)
    pieces = [Wanted(span, write) for span in spans]
    left = iter(pieces)
    with connections_to(parsed, options, Grant((), 0, 4)) as connections:
        error = fetch_ranges(connections, parsed, file, lambda: next(left, None), lambda _: None)
    assert all(piece.is_here for piece in pieces) == (error is None)
    return error


@pytest.mark.parametrize("http2", [False, True])
def test_ranges(
    upstream: Path,
    file: File,
    patched: Patched,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    http2: bool,
) -> None:
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with nginx(upstream, tls=certificate, http2=http2) as server:
        assert ask(server.url, file, patched.write) is None
        lines = server.requests
    patched.prove(SPANS)
    assert {line.split()[1] for line in lines} == {"206"}
    assert sum(int(line.split()[3]) for line in lines) == sum(e - f for f, e in SPANS)


def test_a_thousand_ranges_share_connections(upstream: Path, file: File, patched: Patched) -> None:
    spans = [Span(first, first + 1000) for first in range(0, SIZE, 3000)]
    with nginx(upstream) as server:
        assert ask(server.url, file, patched.write, spans) is None
        assert len(server.requests) == 1000
    patched.prove(spans)


def test_a_range_goes_on_over_broken_connections(
    upstream: Path, file: File, patched: Patched
) -> None:
    with nginx(upstream) as server, weak(server.url, Weakness(most=300_000)) as line:
        assert ask(f"http://{line}", file, patched.write) is None
        assert len(server.requests) > len(SPANS)
    patched.prove(SPANS)


def test_a_server_without_ranges(upstream: Path, file: File, patched: Patched) -> None:
    with nginx(upstream, location="max_ranges 0;") as server:
        error = ask(server.url, file, patched.write)
    assert isinstance(error, NoRangesError)
    assert patched.written == []


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(body=CONTENT, counted=False), NoRangesError),
        (Reply("416 No"), NoRangesError),
        (Reply("206 Partial Content", (), CONTENT[:100]), WrongContentError),
        (
            Reply("206 Partial Content", ("Content-Range: bytes 5-104/3000000",), CONTENT[:100]),
            WrongContentError,
        ),
        (
            Reply("206 Partial Content", ("Content-Range: bytes 0-99/2999999",), CONTENT[:100]),
            WrongContentError,
        ),
        (
            Reply("206 Partial Content", ("Content-Range: bytes 0-99/3000000",), CONTENT[:101]),
            WrongContentError,
        ),
        (
            Reply(
                "206 Partial Content",
                ("Content-Range: bytes 0-99/3000000",),
                CONTENT[:99],
                counted=False,
            ),
            WrongContentError,
        ),
        (
            Reply(
                "206 Partial Content",
                ("Content-Range: bytes 0-99/3000000", "Content-Encoding: gzip"),
                CONTENT[:50],
            ),
            WrongContentError,
        ),
        (Reply(body=b"<html>Log in</html>"), WrongContentError),
        (Reply("404 No"), WrongContentError),
        (Reply("403 No"), UpstreamRefusedError),
        (Reply("401 No"), UpstreamRefusedError),
        (Reply("500 No"), ConnectionBrokenError),
        (Reply("503 No"), UpstreamFullError),
    ],
)
def test_what_does_not_fit_is_not_handed_on(
    file: File, patched: Patched, reply: Reply, kind: type[TransferError]
) -> None:
    with scripted(lambda _: reply) as server:
        error = ask(server.url, file, patched.write, [Span(0, 100)])
    assert type(error) is kind
    assert all(end <= 100 for _, end in patched.written)


def test_more_than_was_asked_for_is_cut_off(file: File, patched: Patched) -> None:
    def more(_: Question) -> Reply:
        fields = ("Content-Range: bytes 0-99/3000000",)
        return Reply("206 Partial Content", fields, CONTENT[:1_000_000], counted=False)

    with scripted(more) as server:
        error = ask(server.url, file, patched.write, [Span(0, 100)])
    assert isinstance(error, WrongContentError)
    assert all(end <= 100 for _, end in patched.written)


def test_what_is_raised_while_a_piece_is_taken_ends_it(upstream: Path, file: File) -> None:
    def full(_position: int, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with nginx(upstream) as server, pytest.raises(OSError, match="No space"):
        ask(server.url, file, full)
