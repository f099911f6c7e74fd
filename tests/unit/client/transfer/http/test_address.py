"""Addresses: every name of a tree has one, and redirections lead to HTTP alone."""

from urllib.parse import unquote_to_bytes, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_client.transfer.http.address import (
    RedirectionError,
    address_of,
    redirected,
    same_service,
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


@pytest.mark.parametrize(
    ("address", "location", "target"),
    [
        ("https://h/a/b", "https://other/c", "https://other/c"),
        ("https://h/a/b", "/c?d=e", "https://h/c?d=e"),
        ("https://h/a/b", "c", "https://h/a/c"),
        ("http://h/a", "https://h/a", "https://h/a"),
        ("http://h/a", "//o:8080/x y", "http://o:8080/x%20y"),
        ("http://h/a", "http://h/\u00e4", "http://h/%C3%A4"),
    ],
)
def test_redirections_that_are_followed(address: str, location: str, target: str) -> None:
    assert redirected(address, location) == target


@pytest.mark.parametrize(
    "location",
    [
        "",
        "http://h/a",
        "file:///etc/passwd",
        "ftp://h/a",
        "gopher://h/a",
        "https://u:p@h/a",
        "https://h:99999/a",
        "https://[::1/a",
        "https://h/" + "a" * 20_000,
    ],
)
def test_redirections_that_are_not(location: str) -> None:
    with pytest.raises(RedirectionError):
        redirected("https://h/a", location)


def test_a_service_is_scheme_host_and_port() -> None:
    assert same_service("https://H/a", "https://h:443/b")
    assert same_service("http://h:80/", "http://h/")
    for other in ("http://h/", "https://h:444/", "https://h.example/", "https://i/"):
        assert not same_service("https://h/", other)
