"""Steps of one kind, done in rows by `Tree`."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from huai_client.plan.withhold import Withholding
from huai_client.tree import PathError, Row, StorageError

T = TypeVar("T")
_LENGTH = 1000
"""Progress and signals are seen between two rows."""
_GROWTH = 4
"""How much longer the next row is, after one that was short because of a failure."""


def in_rows(
    items: Sequence[T],
    do: Callable[[list[T]], Row],
    may: Callable[[T], bool],
    withholding: Withholding,
) -> Iterator[tuple[T, PathError | None]]:
    """Do what `may` allows, once anything waits; yields each item when it was done or has failed.

    A failure has to be reported to `withholding` before the next item is asked for.

    Raises:
        StorageError: the rest was not tried.
    """
    begin, length = 0, _LENGTH
    while begin < len(items):
        row = items[begin : begin + length]
        asked = [(n, item) for n, item in enumerate(row) if withholding.nothing or may(item)]
        count, failure = do([item for _, item in asked]) if asked else Row(0, None)
        for _, item in asked[:count]:
            yield item, None
        if isinstance(failure, StorageError):
            raise failure
        if failure is None:
            begin, length = begin + len(row), min(_LENGTH, length * _GROWTH)
        else:
            number, item = asked[count]
            yield item, failure
            # All that is left has to be asked for again: not too much of it at once.
            begin, length = begin + number + 1, 1
