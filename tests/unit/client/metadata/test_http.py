"""URLs of metadata, and what an advertisement of refs says."""

import pytest

from huai_client.metadata.http import MetadataUrl, retry_after


def test_where_the_repository_is(subtests: pytest.Subtests) -> None:
    for url, expected in [
        ("http://host", "http://host/git/m.git"),
        ("http://host/", "http://host/git/m.git"),
        ("https://host/mirror", "https://host/mirror/git/m.git"),
        ("https://host/x/m.git", "https://host/x/m.git"),
        ("https://host/x/m.git/", "https://host/x/m.git/"),
        ("file:///srv/m.git", "file:///srv/m.git"),
        ("/srv/m", "/srv/m"),
        ("ssh://git@host/m", "ssh://git@host/m"),
    ]:
        with subtests.test(url=url, expected=expected):
            assert MetadataUrl.of(url, "m").url == expected


def test_a_login_is_not_shown() -> None:
    assert str(MetadataUrl("https://me:secret@host/m.git")) == "https://host/m.git"
    assert str(MetadataUrl("/srv/a@b")) == "/srv/a@b"


def test_when_to_come_back(subtests: pytest.Subtests) -> None:
    for text, seconds in [
        (None, 0),
        ("120", 120),
        (" 0 ", 0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 90),
        ("Wed, 21 Oct 2015 07:20:00 GMT", 0),
        ("soon", 0),
        ("-1", 0),
        ("1.5", 0),
        ("9" * 5000, 0),
        ("Wed, 21 Oct 99999999999 07:28:00 GMT", 0),
    ]:
        with subtests.test(text=text, seconds=seconds):
            assert retry_after(text, 1445412390.0) == seconds
