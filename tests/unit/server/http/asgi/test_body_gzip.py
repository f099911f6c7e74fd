import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_server.http.asgi.body import Inflater
from huai_server.http.asgi.errors import HttpError


def feed(inflater: Inflater, data: bytes, step: int) -> bytes:
    parts = [data[at : at + step] for at in range(0, len(data), step)]
    return b"".join(piece for part in parts for piece in inflater.slices(part))


def feed_all(data: bytes) -> None:
    inflater = Inflater()
    feed(inflater, data, 50)
    inflater.finish()


@given(st.binary(max_size=200_000), st.integers(1, 5000))
def test_any_cut_gives_the_content(content: bytes, step: int) -> None:
    inflater = Inflater()
    assert feed(inflater, gzip.compress(content, mtime=0), step) == content
    inflater.finish()


@given(st.binary(min_size=1, max_size=300))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(HttpError):
        feed_all(data)


def test_a_bomb_comes_in_small_pieces() -> None:
    bomb = gzip.compress(bytes(50 << 20))
    pieces = Inflater().slices(bomb)
    assert max(len(next(pieces)) for _ in range(20)) <= 64 << 10


def test_a_cut_stream_and_one_with_more_behind_it() -> None:
    stream = gzip.compress(b"hello")
    cut = Inflater()
    assert feed(cut, stream[:-1], 100) == b"hello"
    with pytest.raises(HttpError, match="too early"):
        cut.finish()
    for more in (stream + b"x", stream + stream):
        with pytest.raises(HttpError, match="after the gzip stream"):
            feed(Inflater(), more, 1000)
