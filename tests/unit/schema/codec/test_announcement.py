"""The file with the URL of a tree's metadata."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_schema.codec.announcement import BYTES_MAX, Announcement
from huai_schema.errors import FormatError

TEXT = b"huai-upstream 1\nurl https://mirror.example\nmodule centos\n"


def test_the_example_of_the_format_page() -> None:
    announcement = Announcement.parse(TEXT)
    assert announcement == Announcement("https://mirror.example", "centos")
    assert announcement.encode() == TEXT


def test_later_versions_may_say_more() -> None:
    text = TEXT.replace(b"\nurl", b"\nkey ssh-ed25519 AAAA\n# \xff\nurl") + b"url http://second\n"
    assert Announcement.parse(text) == Announcement.parse(TEXT)


@pytest.mark.parametrize(
    "url",
    [
        "http://h",
        "http://127.0.0.1:8440",
        "https://[::1]:1/x/y.git",
        "https://mirror.example/huai/?a=b",
    ],
)
def test_addresses(url: str) -> None:
    assert Announcement.of(url, "m").url == url


def test_no_addresses(subtests: pytest.Subtests) -> None:
    for url in [
        *("", "ftp://h", "/srv/x", "http://", "http://u:p@h/", "http://h/ x", "http://h\n"),
        "http://h/\x9b",
    ]:
        with subtests.test(url=url):
            with pytest.raises(FormatError):
                Announcement.of(url, "m")


def test_no_announcements(subtests: pytest.Subtests) -> None:
    for text, reason in [
        (b"", "does not begin with"),
        (TEXT.replace(b"module ", b"moodule "), "the line 'module' is missing"),
        (TEXT + b"x" * BYTES_MAX, f"more than {BYTES_MAX} bytes"),
    ]:
        with subtests.test(reason=reason):
            with pytest.raises(FormatError, match=reason):
                Announcement.parse(text)


@given(st.binary(max_size=200) | st.binary(max_size=100).map(lambda tail: TEXT + tail))
def test_any_bytes_give_a_value_or_our_error(text: bytes) -> None:
    try:
        announcement = Announcement.parse(text)
    except FormatError:
        return
    assert Announcement.parse(announcement.encode()) == announcement
    assert len(announcement.encode()) <= BYTES_MAX
