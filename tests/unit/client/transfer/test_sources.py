"""Which content URLs are asked next, after what one of them did."""

import pytest

from huai_client.state.upstream_health import UpstreamHealth
from huai_client.transfer.errors import (
    ConnectionBrokenError,
    TransferError,
    UpstreamFullError,
    UpstreamRefusedError,
    WrongContentError,
)
from huai_client.transfer.sources import Sources
from huai_client.transfer.urls import ContentUrl

A, B = (ContentUrl.parse(f"https://{name}/m") for name in "ab")


@pytest.mark.parametrize(
    ("failure", "order", "again", "remembered"),
    [
        (ConnectionBrokenError("x"), [B, A], True, ["https://a"]),
        (UpstreamFullError("x"), [B, A], False, []),
        (UpstreamRefusedError("x"), [B], True, ["https://a/m/"]),
        (WrongContentError("x"), [B], True, ["https://a/m/"]),
    ],
)
def test_what_follows_a_failure(
    failure: TransferError, order: list[ContentUrl], again: bool, remembered: list[str]
) -> None:
    health = UpstreamHealth(None)
    sources = Sources([A, B], health)
    assert sources.failed(A, failure) is again
    assert sources.usable() == order
    assert [each.service for each in health.failing()] == remembered
    sources.answered(A)
    assert health.failing() == []


def test_the_last_one_is_asked_on_though_it_has_wrong_content() -> None:
    sources = Sources([A, B], UpstreamHealth(None))
    sources.failed(A, WrongContentError("x"))
    sources.failed(B, WrongContentError("x"))
    assert sources.usable() == [B]


def test_when_all_have_refused_the_last_one_says_why() -> None:
    sources = Sources([A, B], UpstreamHealth(None))
    sources.failed(A, UpstreamRefusedError("a"))
    sources.failed(B, UpstreamRefusedError("b"))
    with pytest.raises(UpstreamRefusedError, match="b"):
        sources.usable()


def test_who_failed_lately_is_asked_last() -> None:
    health = UpstreamHealth(None)
    health.failed("https://a", "down")
    assert Sources([A, B], health).usable() == [B, A]
