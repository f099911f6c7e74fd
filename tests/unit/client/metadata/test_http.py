"""URLs of metadata, and what an advertisement of refs says."""

import pytest

from huai_client.metadata.http import MetadataUrl, retry_after


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://host", "http://host/git/m.git"),
        ("http://host/", "http://host/git/m.git"),
        ("https://host/mirror", "https://host/mirror/git/m.git"),
        ("https://host/x/m.git", "https://host/x/m.git"),
        ("https://host/x/m.git/", "https://host/x/m.git/"),
        ("file:///srv/m.git", "file:///srv/m.git"),
        ("/srv/m", "/srv/m"),
        ("ssh://git@host/m", "ssh://git@host/m"),
    ],
)
def test_where_the_repository_is(url: str, expected: str) -> None:
    assert MetadataUrl.of(url, "m").url == expected


def test_a_login_is_not_shown() -> None:
    assert str(MetadataUrl("https://me:secret@host/m.git")) == "https://host/m.git"
    assert str(MetadataUrl("/srv/a@b")) == "/srv/a@b"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
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
    ],
)
def test_when_to_come_back(text: str | None, seconds: float) -> None:
    assert retry_after(text, 1445412390.0) == seconds
