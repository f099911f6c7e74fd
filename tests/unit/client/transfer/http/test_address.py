"""Every name of a tree has a URL."""

from urllib.parse import unquote_to_bytes, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from huai_client.transfer.http.job import address_of
from huai_schema.paths import RelPath

_NAME = st.binary(min_size=1, max_size=20).map(
    lambda name: name.replace(b"/", b"_").replace(b"\0", b"_")
)


@given(st.lists(_NAME, min_size=1, max_size=4))
def test_every_path_has_an_address_that_says_it(names: list[bytes]) -> None:
    path = b"/".join(names)
    split = urlsplit(address_of("https://h/m/", RelPath(path)))
    assert (split.scheme, split.netloc, split.query, split.fragment) == ("https", "h", "", "")
    assert split.path.isascii()
    assert split.path.isprintable()
    assert unquote_to_bytes(split.path) == b"/m/" + path
