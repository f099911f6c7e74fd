"""Limits on deletions in single directories."""

from collections.abc import Iterator

import pytest

from huai_client.diff.candidate import Remove
from huai_client.plan.deletions import (
    DeleteLimitError,
    TooManyDeletionsError,
    check_directories,
    parse_exceptions,
)
from huai_schema.paths import RelPath
from tests.support.local_trees import at

ENTRIES = {b"dists": 101, b"pool": 1000, b"pool/main": 500, b"new": 3}


class CountedEntries:
    """Counts the entries that were requested."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, path: RelPath) -> Iterator[int]:
        for number in range(ENTRIES[path]):
            self.count += 1
            yield number


def removals(folder: bytes, count: int) -> list[Remove]:
    return [Remove(at(folder + b"/%d" % number), directory=False) for number in range(count)]


def check(items: list[Remove], limits: dict[str, str | int]) -> None:
    check_directories(items, limits, CountedEntries())


@pytest.mark.parametrize(
    ("folder", "allowed", "limits"),
    [
        (b"dists", 10, {"/dists": "10%"}),
        (b"dists", 101, {"/dists": "100%"}),
        (b"dists", 7, {"dists/": 7}),
        (b"dists", 7, {"/dists": "7"}),
        (b"dists", 0, {"/dists": "0%"}),
        (b"pool/main/deep", 50, {"/pool/main": "10%"}),
        (b"pool/main", 100, {"/pool": "10%"}),
        (b"pool/main", 50, {"/pool": "10%", "/pool/main": "10%"}),
        (b"pool/main", 100, {"/*": "10%"}),
        (b"pool/main", 200, {"/*": "10%", "/pool": 200}),
        (b"pool/main", 3, {"/*": 3, "/pool/main": "100%"}),
    ],
)
def test_what_is_allowed(folder: bytes, allowed: int, limits: dict[str, str | int]) -> None:
    check(removals(folder, allowed), limits)
    with pytest.raises(TooManyDeletionsError, match=rf"^{allowed + 1:,} .*entries in /") as caught:
        check(removals(folder, allowed + 1), limits)
    name, count = caught.value.hint.rpartition(" ")[2].split("=")
    check(removals(folder, allowed + 1), {**limits, **parse_exceptions([f"{name}={count}"])})


def test_elsewhere_there_is_no_limit() -> None:
    check(removals(b"project", 10_000), {"/dists": 0, "/pool/main": 0})
    check([Remove(at(b"README"), directory=False)], {"/*": 0})


def test_a_directory_counts_as_one_of_its_entries() -> None:
    deletions = [*removals(b"new", 2), Remove(at(b"new"), directory=True)]
    check(deletions, {"/new": 3})
    check(deletions, {"/new": "100%"})
    with pytest.raises(TooManyDeletionsError, match="3 of 3 entries in /new"):
        check(deletions, {"/*": "99%"})


def test_no_more_is_read_than_it_takes() -> None:
    entries = CountedEntries()
    check_directories(removals(b"pool", 2), {"/pool": "10%"}, entries)
    assert entries.count == 20


@pytest.mark.parametrize(
    "limits", [{"/dists": "ten"}, {"/dists": "-1"}, {"/": 5}, {"/a/../b": 5}, {"/*": "5 %"}]
)
def test_no_limit_at_all(limits: dict[str, str | int]) -> None:
    with pytest.raises(DeleteLimitError):
        check([], limits)


@pytest.mark.parametrize("text", ["/dists", "=5", "/dists=many", "/=5"])
def test_no_exception_at_all(text: str) -> None:
    with pytest.raises(DeleteLimitError):
        parse_exceptions([text])


def test_exceptions() -> None:
    assert parse_exceptions(["dists/=5", "/*=1%", "/a=b=7"]) == {
        "/dists": "5",
        "/*": "1%",
        "/a=b": "7",
    }
