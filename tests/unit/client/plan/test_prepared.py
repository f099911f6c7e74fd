"""Totals of a plan, and the limit on deletions."""

import pytest

from huai_client.diff.candidate import Move, Remove
from huai_client.plan.deletions import (
    DeleteLimitError,
    TooManyDeletionsError,
    allowed_deletions,
    check_deletions,
)
from huai_client.plan.operations import Plan, Stage
from huai_client.plan.prepared import PlanSummary, summarize
from tests.support.local_trees import at, directory, file, linked, symlink

NOTHING = PlanSummary(0, 0, 0, 0, 0, 0, 0, 0)


def test_counts() -> None:
    leader = file(b"a", 5)
    plan = Plan(
        clear=[Remove(at(b"x"), directory=False)],
        make=[at(b"made")],
        moves=[Move(at(b"old"), at(b"new"))],
        stages=[
            Stage("payload", [leader], [linked(b"b", leader)], [symlink(b"s")], [file(b"c")]),
            Stage("indices", [file(b"d", 7)]),
        ],
        removals=[Remove(at(b"y"), directory=True), Remove(at(b"z"), directory=False)],
        directories=[directory(b"made"), directory(b"")],
    )
    assert summarize(plan) == PlanSummary(
        fetches=2,
        fetch_bytes=12,
        links=1,
        symlinks=1,
        attributes=2,
        moves=1,
        new_directories=1,
        deletions=3,
    )
    assert not summarize(plan).nothing
    assert NOTHING.nothing


def test_what_is_allowed(subtests: pytest.Subtests) -> None:
    for limit, entries, allowed in [
        ("0", 10, 0),
        ("5000", 10, 5000),
        ("10%", 10, 1000),
        ("10%", 50_000, 5000),
        ("0%", 50_000, 1000),
        ("100%", 50_000, 50_000),
    ]:
        with subtests.test(limit=limit, entries=entries, allowed=allowed):
            assert allowed_deletions(limit, entries) == allowed
            check_deletions(allowed, limit, entries)
            with pytest.raises(
                TooManyDeletionsError, match=f"{allowed + 1:,} of {entries:,}"
            ) as caught:
                check_deletions(allowed + 1, limit, entries)
            assert f"--max-delete {allowed + 1}" in caught.value.hint


def test_no_limit_at_all(subtests: pytest.Subtests) -> None:
    for limit in ["", "%", "ten", "-1", "1.5%", "10 %", "٣"]:
        with subtests.test(limit=limit):
            with pytest.raises(DeleteLimitError, match="neither a count nor a share"):
                allowed_deletions(limit, 10)
