import gzip

from hypothesis import given
from hypothesis import strategies as st

from huai_server.http.asgi.body import Inflater


def feed(inflater: Inflater, data: bytes, step: int) -> bytes:
    parts = [data[at : at + step] for at in range(0, len(data), step)]
    return b"".join(piece for part in parts for piece in inflater.slices(part))


@given(st.binary(max_size=200_000), st.integers(1, 5000))
def test_any_cut_gives_the_content(content: bytes, step: int) -> None:
    inflater = Inflater()
    assert feed(inflater, gzip.compress(content, mtime=0), step) == content
    inflater.finish()
