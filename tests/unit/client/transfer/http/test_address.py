"""Addresses: every name of a tree has one, and redirections lead to HTTP alone."""

from urllib.parse import unquote_to_bytes, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_client.transfer.http.address import (
    RedirectionError,
    address_of,
    redirected,
)
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


def test_redirections_that_are_followed(subtests: pytest.Subtests) -> None:
    for address, location, target in [
        ("https://h/a/b", "https://other/c", "https://other/c"),
        ("https://h/a/b", "/c?d=e", "https://h/c?d=e"),
        ("https://h/a/b", "c", "https://h/a/c"),
        ("http://h/a", "https://h/a", "https://h/a"),
        ("http://h/a", "//o:8080/x y", "http://o:8080/x%20y"),
        ("http://h/a", "http://h/\u00e4", "http://h/%C3%A4"),
    ]:
        with subtests.test(address=address, location=location, target=target):
            assert redirected(address, location) == target


def test_redirections_that_are_not(subtests: pytest.Subtests) -> None:
    for location in [
        "",
        "http://h/a",
        "file:///etc/passwd",
        "ftp://h/a",
        "gopher://h/a",
        "https://u:p@h/a",
        "https://h:99999/a",
        "https://[::1/a",
        "https://h/" + "a" * 20_000,
    ]:
        with subtests.test(location=location):
            with pytest.raises(RedirectionError):
                redirected("https://h/a", location)
