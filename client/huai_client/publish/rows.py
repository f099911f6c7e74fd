"""Runs steps of one kind in rows, by `Tree`."""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from huai_client.plan.withhold import Withholding
from huai_client.tree import PathError, RowResult, StorageError

T = TypeVar("T")
_LENGTH = 1000
"""Progress and signals are handled between two rows."""
_GROWTH = 4
"""Factor for the length of the next row, after a short one because of a failure."""


class FailedItem(NamedTuple, Generic[T]):
    """The step that ended a row, and its error."""

    item: T
    error: PathError


class Steps(NamedTuple, Generic[T]):
    """The result of a row."""

    done: Sequence[T]
    failed: FailedItem[T] | None


def in_rows(
    items: Sequence[T],
    do: Callable[[Sequence[T]], RowResult],
    may: Callable[[T], bool],
    withholding: Withholding,
) -> Iterator[Steps[T]]:
    """Do the steps `items` row by row, and yield those done of each row, with the first failure.

    Once a path waits, does only those that `may` allows; so the caller has to report a failure to
    `withholding` before it requests the next row.  Raises `StorageError` if the disk failed; then
    the rest was not tried.
    """
    begin, length = 0, _LENGTH
    while begin < len(items):
        row = items[begin : begin + length]
        allowed: Sequence[T] = row
        positions: Sequence[int] = range(len(row))
        if not withholding.nothing:
            positions = [position for position, item in enumerate(row) if may(item)]
            allowed = [row[position] for position in positions]
        count, failure = do(allowed) if allowed else RowResult(0, None)
        if isinstance(failure, StorageError):
            yield Steps(allowed[:count], None)
            raise failure
        if failure is None:
            yield Steps(allowed, None)
            begin, length = begin + len(row), min(_LENGTH, length * _GROWTH)
        else:
            yield Steps(allowed[:count], FailedItem(allowed[count], failure))
            # The remaining steps must be checked again: not too many at once.
            begin, length = begin + positions[count] + 1, 1
