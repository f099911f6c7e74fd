"""One file from several mirrors at once, whatever one of them does."""

import os
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from huai_client.state.upstream_health import UpstreamHealth
from huai_client.transfer import ContentUrl, TransferOptions
from huai_client.transfer.large.arriving import Making
from huai_client.transfer.large.pieces import Pieces
from huai_client.transfer.sources import Sources
from huai_native._native import BlockIndex
from huai_schema.entries import File
from tests.support.certificate import make_certificate
from tests.support.nginx import Nginx, nginx
from tests.support.scripted_http import Question, Reply, scripted
from tests.support.transfers import TEST_OPTIONS, Recorder, put
from tests.support.weak_network import Weakness, nobody, silent, weak

BLOCK = 64 << 10
BLOCKS = 40
SIZE = BLOCKS * BLOCK - 777
CONTENT = os.urandom(SIZE)
NAME = b"d/large file"
RANGES = [(at, min(SIZE, at + BLOCK)) for at in range(0, SIZE, BLOCK)]
"""Each block by itself, as if the others were here."""


@pytest.fixture(name="file")
def file_of_the_upstream(upstream: Path) -> File:
    return put(upstream, NAME, CONTENT)


class Ground:
    """Where a file is put together, again and again."""

    def __init__(self, folder: Path, file: File) -> None:
        self.listener = Recorder()
        self._file = file
        self._target = folder / "target"
        source = folder / "source"
        source.write_bytes(CONTENT)
        with source.open("rb") as opened:
            index = BlockIndex.of_file(opened.fileno(), BLOCK, 1)
        assert index is not None
        self._index = index

    @contextmanager
    def pieces(self, *urls: str, options: TransferOptions = TEST_OPTIONS) -> Iterator[Pieces]:
        parsed = [ContentUrl.parse(url)._replace(own=True) for url in urls]
        sources = Sources(parsed, UpstreamHealth(None))
        with Pieces(sources, options, self.listener) as pieces:
            yield pieces

    def fetch(self, pieces: Pieces, ranges: Sequence[tuple[int, int]] = RANGES) -> bool:
        """A new file; what came is right."""
        with self._target.open("w+b") as target:
            making = Making(self._file, self._index, target.fileno())
            whole = pieces.fetch(making, ranges)
            if whole:
                wrong = self._index.wrong_ranges(target.fileno(), [*ranges], 1)
                assert wrong == []
        return whole


@pytest.fixture(name="ground")
def ground_of_the_file(tmp_path: Path, file: File) -> Ground:
    return Ground(tmp_path, file)


def asked(*servers: Nginx) -> list[str]:
    return [line.split('"')[1] for server in servers for line in server.requests]


def test_each_range_is_asked_once(upstream: Path, ground: Ground) -> None:
    with nginx(upstream) as one, nginx(upstream) as two, nginx(upstream) as three:
        with ground.pieces(one.url, two.url, three.url) as pieces:
            assert ground.fetch(pieces)
            assert pieces.received >= SIZE
        ranges = [f"bytes={first}-{end - 1}" for first, end in RANGES]
        assert sorted(asked(one, two, three)) == sorted(ranges)
        for server in (one, two, three):
            assert len({*server.connections}) <= 4
    assert ground.listener.retries == []
    assert ground.listener.sizes[-1] >= SIZE


def test_connections_stay_for_the_next_file(upstream: Path, ground: Ground) -> None:
    with nginx(upstream) as one, nginx(upstream) as two:
        with ground.pieces(one.url, two.url) as pieces:
            for _ in range(5):
                assert ground.fetch(pieces)
        for server in (one, two):
            assert len({*server.connections}) <= 4


def test_a_fast_mirror_brings_more(upstream: Path, ground: Ground) -> None:
    with nginx(upstream) as fast, nginx(upstream, location="limit_rate 32k;") as slow:
        with ground.pieces(slow.url, fast.url) as pieces:
            assert ground.fetch(pieces)
        assert len(asked(fast)) > len(asked(slow))


def test_a_fifth_mirror_stands_in_for_one_that_fails(upstream: Path, ground: Ground) -> None:
    with ExitStack() as stack:
        gone = [stack.enter_context(nobody()) for _ in range(4)]
        good = stack.enter_context(nginx(upstream))
        urls = [*(f"http://{each}" for each in gone), good.url]
        pieces = stack.enter_context(ground.pieces(*urls))
        assert ground.fetch(pieces)
        assert len(asked(good)) == len(RANGES)
        assert ground.fetch(pieces)
    assert len(ground.listener.retries) == 4, "those that nobody answers are not asked again"


def test_one_mirror_alone(upstream: Path, ground: Ground) -> None:
    with nginx(upstream) as only, ground.pieces(only.url) as pieces:
        assert ground.fetch(pieces, [(0, SIZE)])
        assert asked(only) == [f"bytes=0-{SIZE - 1}"]


def test_http2_has_no_more_ranges_at_a_time(
    upstream: Path, ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with (
        nginx(upstream, tls=certificate, http2=True) as one,
        nginx(upstream, tls=certificate, http2=True) as two,
        ground.pieces(one.url, two.url) as pieces,
    ):
        assert ground.fetch(pieces)
        assert len(asked(one, two)) == len(RANGES)
        assert {*one.connections, *two.connections}
        assert len({*one.connections}) <= 1
        assert len({*two.connections}) <= 1


def test_bwlimit_is_shared(upstream: Path, ground: Ground) -> None:
    # On a busy machine libcurl's pauses get long.
    options = replace(TEST_OPTIONS, bwlimit=4096, timeout=60, retries=4)
    with (
        nginx(upstream) as one,
        nginx(upstream) as two,
        ground.pieces(one.url, two.url, options=options) as pieces,
    ):
        assert ground.fetch(pieces)


# ---------------------------------------------------------------- one of two mirrors is bad


def piece(question: Question, content: bytes, *more: str, at: int = 0, size: int = SIZE) -> Reply:
    """What was asked for of `content`, said to begin `at` bytes further on."""
    first, _, last = question.headers["range"].removeprefix("bytes=").partition("-")
    begin, end = int(first), int(last) + 1
    said = f"Content-Range: bytes {begin + at}-{end - 1 + at}/{size}"
    return Reply("206 Partial Content", (said, *more), content[begin:end])


def longer(question: Question) -> Reply:
    fine = piece(question, CONTENT)
    return fine._replace(body=fine.body + bytes(BLOCK))


def endless(question: Question) -> Reply:
    fine = piece(question, CONTENT)
    return fine._replace(body=fine.body + bytes(BLOCK), counted=False)


def shorter(question: Question) -> Reply:
    fine = piece(question, CONTENT)
    return fine._replace(body=fine.body[:-1], counted=False)


def circle(question: Question) -> Reply:
    other = "/a" if question.path == "/b" else "/b"
    return Reply("302 Found", (f"Location: {other}",))


NOISE = os.urandom(SIZE)
MIDDLE = CONTENT[: SIZE // 2] + os.urandom(100) + CONTENT[SIZE // 2 + 100 :]
LOGIN = b"<html><form action=/login>Who are you?</form></html>"

ANSWERS = {
    "a range further on": (lambda q: piece(q, CONTENT, at=1), "instead of"),
    "of another size": (lambda q: piece(q, CONTENT, size=SIZE + 1), "bytes instead of"),
    "longer than asked": (longer, "for a piece of"),
    "longer than it says": (endless, "more bytes than were asked for"),
    "shorter than it says": (shorter, "it ends after"),
    "no Content-Range": (lambda _: Reply("206 Partial Content", (), CONTENT[:BLOCK]), "no range"),
    "200 instead of 206": (lambda _: Reply(body=CONTENT), "the whole file instead of a piece"),
    "416": (lambda _: Reply("416 No"), "HTTP 416"),
    "gzip": (
        lambda q: piece(q, b"\x1f\x8b" + NOISE, "Content-Encoding: gzip")._replace(counted=False),
        "which was not asked for",
    ),
    "gzip of the right length": (
        lambda q: piece(q, NOISE, "Content-Encoding: gzip"),
        "holds something else",
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
    "an older version": (lambda q: piece(q, NOISE), "holds something else"),
    "random bytes in the middle": (lambda q: piece(q, MIDDLE), "holds something else"),
    "a truncated one": (
        lambda _: Reply("416 Range Not Satisfiable", ("Content-Range: bytes */7",)),
        "HTTP 416",
    ),
    "404": (lambda _: Reply("404 No"), "HTTP 404"),
    "403": (lambda _: Reply("403 No"), "HTTP 403"),
    "500": (lambda _: Reply("500 Oh"), "HTTP 500"),
    "full for hours": (lambda _: Reply("503 Busy", ("Retry-After: 7200",)), "HTTP 503"),
    "no HTTP": (lambda _: Reply("999 \x01"), "999"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_does_not_fit_comes_from_the_other(upstream: Path, ground: Ground, name: str) -> None:
    """It is said, and of what is asked for nothing is lost or wrong."""
    reply, said = ANSWERS[name]
    with (
        nginx(upstream, location="limit_rate 256k;") as good,
        scripted(reply) as bad,
        ground.pieces(bad.url, good.url) as pieces,
    ):
        assert ground.fetch(pieces)
        assert bad.questions
    assert said in " ".join(ground.listener.retries)


@pytest.mark.parametrize("name", ANSWERS)
def test_what_does_not_fit_is_nothing(ground: Ground, name: str) -> None:
    reply, said = ANSWERS[name]
    with scripted(reply) as bad, ground.pieces(bad.url) as pieces:
        assert not ground.fetch(pieces)
    assert said in " ".join(ground.listener.retries)


def test_a_wrong_block_is_the_last_thing_that_a_mirror_is_asked_for(
    upstream: Path, ground: Ground
) -> None:
    with (
        nginx(upstream) as good,
        scripted(lambda question: piece(question, NOISE)) as bad,
        ground.pieces(bad.url, good.url) as pieces,
    ):
        assert ground.fetch(pieces)
        before = len(bad.questions)
        assert before <= 4
        assert ground.fetch(pieces)
        assert len(bad.questions) == before


def test_another_version_of_one_file_says_nothing_of_others(upstream: Path, ground: Ground) -> None:
    has_it = threading.Event()

    def late(question: Question) -> Reply:
        return piece(question, CONTENT) if has_it.is_set() else Reply("404 No")

    with (
        nginx(upstream, location="limit_rate 256k;") as good,
        scripted(late) as bad,
        ground.pieces(bad.url, good.url) as pieces,
    ):
        assert ground.fetch(pieces)
        has_it.set()
        before = len(bad.questions)
        assert ground.fetch(pieces)
        assert len(bad.questions) > before


@pytest.mark.parametrize("status", ["429 Enough", "503 Busy"])
@pytest.mark.parametrize("beside", [True, False])
def test_a_full_mirror_is_asked_again(
    upstream: Path, ground: Ground, status: str, *, beside: bool
) -> None:
    """After the time that it asks for; alone as well."""
    refusals = [1]

    def full(question: Question) -> Reply:
        if refusals:
            refusals.pop()
            return Reply(status, ("Retry-After: 1",))
        return piece(question, CONTENT)

    with ExitStack() as stack:
        bad = stack.enter_context(scripted(full))
        good = stack.enter_context(nginx(upstream, location="limit_rate 16k;"))
        urls = [bad.url, good.url] if beside else [bad.url]
        pieces = stack.enter_context(ground.pieces(*urls))
        assert ground.fetch(pieces)
        assert len(bad.questions) > 1
    assert ground.listener.retries == []


def test_a_redirection_to_another_host_is_followed(upstream: Path, ground: Ground) -> None:
    with nginx(upstream) as good:

        def elsewhere(question: Question) -> Reply:
            return Reply("307 There", (f"Location: {good.url}{question.path}",))

        with scripted(elsewhere) as named, ground.pieces(named.url) as pieces:
            assert ground.fetch(pieces)
        assert len(asked(good)) == len(RANGES)


def test_no_redirection_leads_out_of_tls(
    upstream: Path, ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    with nginx(upstream) as plain:

        def out(question: Question) -> Reply:
            return Reply("302 Found", (f"Location: {plain.url}{question.path}",))

        with scripted(out, tls) as named, ground.pieces(named.url) as pieces:
            assert not ground.fetch(pieces)
        assert asked(plain) == []
    assert "from https to http" in " ".join(ground.listener.retries)


def test_a_certificate_that_nobody_vouches_for(
    upstream: Path, ground: Ground, tmp_path: Path
) -> None:
    with (
        nginx(upstream, tls=make_certificate(tmp_path)) as bad,
        nginx(upstream) as good,
        ground.pieces(bad.url, good.url) as pieces,
    ):
        assert ground.fetch(pieces)
        assert asked(bad) == []
    assert "certificate" in " ".join(ground.listener.retries)


@pytest.mark.parametrize("kind", ["trickles", "is silent", "stops in the middle"])
def test_a_mirror_that_is_slow_by_far_is_overtaken(
    upstream: Path, ground: Ground, kind: str
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
        pieces = stack.enter_context(ground.pieces(bad, good.url))
        assert ground.fetch(pieces)
        assert ground.fetch(pieces)
    (said,) = ground.listener.retries
    assert said == f"{bad}/: slower than others by far"


def test_connections_that_break_are_made_again(upstream: Path, ground: Ground) -> None:
    with nginx(upstream) as real, nginx(upstream) as good:
        weakness = Weakness(most=3 * BLOCK // 2)
        with weak(real.url, weakness) as bad, ground.pieces(f"http://{bad}", good.url) as pieces:
            assert ground.fetch(pieces)


def test_a_disk_that_takes_nothing_ends_it(
    upstream: Path, ground: Ground, file: File, tmp_path: Path
) -> None:
    index = BlockIndex.of_file(os.open(tmp_path / "source", os.O_RDONLY), BLOCK, 1)
    assert index is not None
    with (
        nginx(upstream) as one,
        nginx(upstream) as two,
        ground.pieces(one.url, two.url) as pieces,
        open("/dev/full", "wb") as full,
        pytest.raises(OSError, match="No space"),
    ):
        pieces.fetch(Making(file, index, full.fileno()), RANGES)
