"""One file from several mirrors at once, whatever one of them does."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from huai_client.state.upstreams import UpstreamHealth
from huai_client.transfer.large.pieces import Pieces
from huai_client.transfer.large.range_source import NewFile
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.sources import Sources
from huai_client.transfer.urls import ContentUrl
from huai_native._native import BlockIndex
from huai_schema.entries import File
from tests.support.certificate import make_certificate
from tests.support.nginx import Nginx, nginx
from tests.support.scripted_http import Reply, Request, scripted
from tests.support.transfers import TEST_OPTIONS, Recorder, write_file
from tests.support.weak_network import Weakness, silent, unused_port, weak

BLOCK = 64 << 10
BLOCKS = 40
SIZE = BLOCKS * BLOCK - 777
CONTENT = os.urandom(SIZE)
NAME = b"d/large file"
RANGES = [(at, min(SIZE, at + BLOCK)) for at in range(0, SIZE, BLOCK)]
"""Each block by itself, as if the others were here."""


@pytest.fixture(name="file")
def file_of_the_upstream(upstream: Path) -> File:
    return write_file(upstream, NAME, CONTENT)


class Assembly:
    """A file that is put together from its pieces, again and again."""

    def __init__(self, folder: Path, file: File) -> None:
        self.listener = Recorder()
        self.file = file
        self._target = folder / "target"
        source = folder / "source"
        source.write_bytes(CONTENT)
        with source.open("rb") as opened:
            index = BlockIndex.of_file(opened.fileno(), BLOCK, 1)
        assert index is not None
        self.index = index

    @contextmanager
    def pieces(self, *urls: str, options: TransferOptions = TEST_OPTIONS) -> Iterator[Pieces]:
        parsed = [ContentUrl.parse(url)._replace(own=True) for url in urls]
        sources = Sources(parsed, UpstreamHealth(None))
        with Pieces(sources, options, self.listener) as pieces:
            yield pieces

    def fetch(self, pieces: Pieces, ranges: Sequence[tuple[int, int]] = RANGES) -> bool:
        """Fetch a new file; true if it is complete, and then it is right."""
        with self._target.open("w+b") as target:
            making = NewFile(self.file, self.index, target.fileno())
            complete = pieces.fetch(making, ranges)
            if complete:
                assert self.index.wrong_ranges(target.fileno(), [*ranges], 1) == []
        return complete

    def messages(self) -> str:
        return " ".join(self.listener.retries)


@pytest.fixture(name="assembly")
def assembly_of_the_file(tmp_path: Path, file: File) -> Assembly:
    return Assembly(tmp_path, file)


def ranges(*servers: Nginx) -> list[str]:
    return [line.split('"')[1] for server in servers for line in server.requests]


def test_each_range_is_requested_once(upstream: Path, assembly: Assembly) -> None:
    with nginx(upstream) as one, nginx(upstream) as two, nginx(upstream) as three:
        with assembly.pieces(one.url, two.url, three.url) as pieces:
            assert assembly.fetch(pieces)
            assert pieces.received >= SIZE
        expected = sorted(f"bytes={first}-{end - 1}" for first, end in RANGES)
        assert sorted(ranges(one, two, three)) == expected
        for server in (one, two, three):
            assert len({*server.connections}) <= 4
    assert assembly.listener.retries == []
    assert assembly.listener.sizes[-1] >= SIZE


def test_connections_stay_for_the_next_file(upstream: Path, assembly: Assembly) -> None:
    with nginx(upstream) as one, nginx(upstream) as two:
        with assembly.pieces(one.url, two.url) as pieces:
            for _ in range(5):
                assert assembly.fetch(pieces)
        for server in (one, two):
            assert len({*server.connections}) <= 4


def test_a_fifth_mirror_stands_in_for_one_that_fails(upstream: Path, assembly: Assembly) -> None:
    with ExitStack() as stack:
        dead = [f"http://{stack.enter_context(unused_port())}" for _ in range(4)]
        good = stack.enter_context(nginx(upstream))
        pieces = stack.enter_context(assembly.pieces(*dead, good.url))
        assert assembly.fetch(pieces)
        assert len(ranges(good)) == len(RANGES)
        assert assembly.fetch(pieces)
    assert len(assembly.listener.retries) == 4, "mirrors that are down are not asked again"


def test_http2_has_no_more_ranges_at_a_time(
    upstream: Path, assembly: Assembly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with (
        nginx(upstream, tls=certificate, http2=True) as one,
        nginx(upstream, tls=certificate, http2=True) as two,
        assembly.pieces(one.url, two.url) as pieces,
    ):
        assert assembly.fetch(pieces)
        assert len(ranges(one, two)) == len(RANGES)
        connections = [{*one.connections}, {*two.connections}]
        assert any(connections)
        assert all(len(numbers) <= 1 for numbers in connections)


def piece(question: Request, content: bytes, *more: str, at: int = 0, size: int = SIZE) -> Reply:
    """Reply with the piece of `content` that is requested, as if it began `at` bytes further on."""
    first, _, last = question.headers["range"].removeprefix("bytes=").partition("-")
    begin, end = int(first), int(last) + 1
    header = f"Content-Range: bytes {begin + at}-{end - 1 + at}/{size}"
    return Reply("206 Partial Content", (header, *more), content[begin:end])


def longer(question: Request) -> Reply:
    fine = piece(question, CONTENT)
    return fine._replace(body=fine.body + bytes(BLOCK))


def shorter(question: Request) -> Reply:
    fine = piece(question, CONTENT)
    return fine._replace(body=fine.body[:-1], counted=False)


def circle(question: Request) -> Reply:
    other = "/a" if question.path == "/b" else "/b"
    return Reply("302 Found", (f"Location: {other}",))


NOISE = os.urandom(SIZE)
MIDDLE = CONTENT[: SIZE // 4] + os.urandom(SIZE // 2) + CONTENT[SIZE // 4 + SIZE // 2 :]
LOGIN = b"<html><form action=/login>Who are you?</form></html>"

ANSWERS = {
    "a range further on": (lambda q: piece(q, CONTENT, at=1), "instead of"),
    "of another size": (lambda q: piece(q, CONTENT, size=SIZE + 1), "bytes instead of"),
    "longer than asked": (longer, "for a piece of"),
    "longer than it says": (
        lambda q: longer(q)._replace(counted=False),
        "more bytes than were requested",
    ),
    "shorter than it says": (shorter, "it ends after"),
    "no Content-Range": (
        lambda _: Reply("206 Partial Content", (), CONTENT[:BLOCK]),
        "without a requested range",
    ),
    "200 instead of 206": (lambda _: Reply(body=CONTENT), "the whole file instead of a piece"),
    "gzip": (
        lambda q: piece(q, b"\x1f\x8b" + NOISE, "Content-Encoding: gzip")._replace(counted=False),
        "which was not requested",
    ),
    "gzip of the right length": (
        lambda q: piece(q, NOISE, "Content-Encoding: gzip"),
        "wrong content",
    ),
    "a redirection to ftp": (
        lambda _: Reply("302 Found", ("Location: ftp://127.0.0.1/x",)),
        "not HTTP",
    ),
    "redirections in a circle": (circle, "without an end"),
    "a login page": (
        lambda _: Reply(headers=("Content-Type: text/html",), body=LOGIN),
        f"{len(LOGIN)} bytes instead of",
    ),
    "a login": (lambda _: Reply("401 No", ("WWW-Authenticate: Basic",)), "HTTP 401"),
    "random bytes in the middle": (lambda q: piece(q, MIDDLE), "wrong content"),
    "a truncated one": (
        lambda _: Reply("416 Range Not Satisfiable", ("Content-Range: bytes */7",)),
        "HTTP 416",
    ),
    "full for hours": (lambda _: Reply("503 Busy", ("Retry-After: 7200",)), "HTTP 503"),
    "no HTTP": (lambda _: Reply("999 \x01"), "999"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_wrong_piece_is_fetched_from_the_other_mirror(
    upstream: Path, assembly: Assembly, name: str
) -> None:
    """A message says why, and without another mirror the file is not complete."""
    reply, reason = ANSWERS[name]
    with scripted(reply) as bad:
        with assembly.pieces(bad.url) as pieces:
            assert not assembly.fetch(pieces)
        assert reason in assembly.messages()
        assembly.listener.retries.clear()
        bad.questions.clear()
        with (
            nginx(upstream, location="limit_rate 1m;") as good,
            assembly.pieces(bad.url, good.url) as pieces,
        ):
            assert assembly.fetch(pieces)
            assert bad.questions
        assert reason in assembly.messages()


def test_after_a_wrong_block_a_mirror_is_asked_for_no_more(
    upstream: Path, assembly: Assembly
) -> None:
    with (
        nginx(upstream) as good,
        scripted(lambda question: piece(question, NOISE)) as bad,
        assembly.pieces(bad.url, good.url) as pieces,
    ):
        assert assembly.fetch(pieces)
        before = len(bad.questions)
        assert before <= 4
        assert assembly.fetch(pieces)
        assert len(bad.questions) == before


def test_a_mirror_that_lacks_one_file_is_asked_for_others(
    upstream: Path, assembly: Assembly
) -> None:
    has_it = threading.Event()

    def late(question: Request) -> Reply:
        return piece(question, CONTENT) if has_it.is_set() else Reply("404 No")

    with (
        nginx(upstream, location="limit_rate 1m;") as good,
        scripted(late) as bad,
        assembly.pieces(bad.url, good.url) as pieces,
    ):
        assert assembly.fetch(pieces)
        has_it.set()
        before = len(bad.questions)
        assert assembly.fetch(pieces)
        assert len(bad.questions) > before


@pytest.mark.parametrize("status", ["429 Enough", "503 Busy"])
@pytest.mark.parametrize("alone", [True, False])
def test_a_full_mirror_is_asked_again(
    upstream: Path, assembly: Assembly, status: str, *, alone: bool
) -> None:
    """After the time that it asks for."""
    refusals = [Reply(status, ("Retry-After: 1",))]

    def full(question: Request) -> Reply:
        return refusals.pop() if refusals else piece(question, CONTENT)

    with scripted(full) as bad, nginx(upstream, location="limit_rate 16k;") as good:
        urls = [bad.url] if alone else [bad.url, good.url]
        with assembly.pieces(*urls) as pieces:
            assert assembly.fetch(pieces)
        assert len(bad.questions) > 1
    assert assembly.listener.retries == []


@pytest.mark.parametrize("kind", ["trickles", "is silent", "stops in the middle"])
def test_a_mirror_that_is_slow_by_far_is_overtaken(
    upstream: Path, assembly: Assembly, kind: str
) -> None:
    with ExitStack() as stack:
        real = stack.enter_context(nginx(upstream))
        good = stack.enter_context(nginx(upstream))
        kinds = {
            "trickles": weak(real.url, Weakness(pace=500)),
            "is silent": silent(),
            "stops in the middle": weak(real.url, Weakness(most=10_000, stalls=True)),
        }
        bad = f"http://{stack.enter_context(kinds[kind])}"
        pieces = stack.enter_context(assembly.pieces(bad, good.url))
        assert assembly.fetch(pieces)
        assert assembly.fetch(pieces)
    assert assembly.listener.retries == [f"{bad}/: much slower than the other URLs"]


def test_connections_that_break_are_made_again(upstream: Path, assembly: Assembly) -> None:
    with (
        nginx(upstream) as real,
        nginx(upstream) as good,
        weak(real.url, Weakness(most=3 * BLOCK // 2)) as bad,
        assembly.pieces(f"http://{bad}", good.url) as pieces,
    ):
        assert assembly.fetch(pieces)


def test_a_full_disk_ends_it(upstream: Path, assembly: Assembly) -> None:
    with (
        nginx(upstream) as one,
        nginx(upstream) as two,
        assembly.pieces(one.url, two.url) as pieces,
        open("/dev/full", "wb") as full,
        pytest.raises(OSError, match="No space"),
    ):
        pieces.fetch(NewFile(assembly.file, assembly.index, full.fileno()), RANGES)
