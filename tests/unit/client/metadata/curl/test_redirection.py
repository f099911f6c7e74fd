"""Redirects lead only to HTTP."""

import pytest

from huai_client.metadata.curl.head import RedirectionError, redirect_target


def test_redirections_that_are_followed(subtests: pytest.Subtests) -> None:
    for address, location, target in [
        ("https://h/a/b", "https://other/c", "https://other/c"),
        ("https://h/a/b", "/c?d=e", "https://h/c?d=e"),
        ("https://h/a/b", "c", "https://h/a/c"),
        ("http://h/a", "https://h/a", "https://h/a"),
        ("http://h/a", "//o:8080/x y", "http://o:8080/x%20y"),
        ("http://h/a", "http://h/\u00e4", "http://h/%C3%A4"),
        ("https://h/a", "https://u:p@o/a", "https://o/a"),
    ]:
        with subtests.test(address=address, location=location, target=target):
            assert redirect_target(address, location) == target


def test_redirections_that_are_not(subtests: pytest.Subtests) -> None:
    for location in [
        *("", "http://h/a", "file:///etc/passwd", "ftp://h/a", "gopher://h/a", "data:text/plain,x"),
        *("//[/x", "https://h:99999/a", "https://[::1/a", "https://h/" + "a" * 20_000),
    ]:
        with subtests.test(location=location):
            with pytest.raises(RedirectionError):
                redirect_target("https://h/a", location)
