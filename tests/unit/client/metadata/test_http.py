"""URLs of metadata."""

import pytest

from huai_client.metadata.http import MetadataUrl


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
