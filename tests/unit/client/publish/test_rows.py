"""`in_rows`: the length of rows, and the check before each of them."""

import errno
from collections.abc import Sequence

import pytest

from huai_client.plan.withhold import Withholding
from huai_client.publish.rows import in_rows
from huai_client.tree import PathError, RowResult, StorageError
from huai_schema.paths import RelPath
from tests.support.local_trees import at


class Steps:
    """Does all steps but the broken ones; records its rows."""

    def __init__(self, *broken: bytes) -> None:
        self.rows: list[int] = []
        self._broken = broken

    def __call__(self, items: Sequence[RelPath]) -> RowResult:
        self.rows.append(len(items))
        for count, item in enumerate(items):
            if item in self._broken:
                return RowResult(count, PathError(item, "broken"))
        return RowResult(len(items), None)


def paths(count: int) -> list[RelPath]:
    return [at(b"%05d" % number) for number in range(count)]


def run(items: list[RelPath], steps: Steps) -> tuple[list[RelPath], list[RelPath], list[RelPath]]:
    """Return the done, failed and checked paths."""
    withholding = Withholding()
    done: list[RelPath] = []
    failed: list[RelPath] = []
    checked: list[RelPath] = []

    def may(path: RelPath) -> bool:
        checked.append(path)
        return not path.endswith(b"7")

    for row in in_rows(items, steps, may, withholding):
        done += row.done
        if row.failed:
            failed.append(row.failed.item)
            withholding.fail(row.failed.item)
    return done, failed, checked


def test_all_after_a_failure_are_asked_for_and_each_is_done_once() -> None:
    steps = Steps(b"00500", b"01003")
    items = paths(1100)
    done, failed, checked = run(items, steps)
    assert failed == [b"00500", b"01003"]
    assert done == [
        path
        for number, path in enumerate(items)
        if path not in failed and (number < 500 or number % 10 != 7)
    ]
    assert set(checked) == {*items[501:]}
    # Few paths are checked again: short rows come after a failure.
    assert len(checked) < 2 * 599


def test_what_is_done_is_told_before_the_disk_is_full() -> None:
    def full(_: Sequence[RelPath]) -> RowResult:
        return RowResult(2, StorageError(at(b"x"), errno.ENOSPC))

    items = paths(5)
    rows = in_rows(items, full, lambda _: True, Withholding())
    assert next(rows) == (items[:2], None)
    with pytest.raises(StorageError, match="x: No space"):
        next(rows)
