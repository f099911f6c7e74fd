"""How much a selection holds: for limits, for the sizes that are told, for the state.

Pure but for what a selection reads.
"""

from collections.abc import Iterable
from typing import NamedTuple, Self

from huai_client.diff.selection import Selection
from huai_schema.codec.commits import Totals
from huai_schema.diff.changes import Change
from huai_schema.diff.diff import Difference
from huai_schema.entries import Entry, File


class Extent(NamedTuple):
    """Counts of one selection."""

    entries: int
    bytes: int
    """Of all files; a hardlink group counts once for each name, as in a commit's totals."""

    @classmethod
    def of_totals(cls, totals: Totals) -> Self:
        """What a commit says of itself: without a filter that is all."""
        return cls(totals.entries, totals.bytes)

    @classmethod
    def of(cls, selection: Selection) -> Self:
        """Look at all that is selected."""
        entries = size = 0
        for entry in selection.entries():
            entries += 1
            size += _size(entry)
        return cls(entries, size)

    def after(self, steps: Iterable[Difference]) -> Self:
        """What `steps` make of it; what is only moved counts as before."""
        entries, size = self
        for step in steps:
            if isinstance(step, Change):
                entries += (step.new is not None) - (step.old is not None)
                size += _size(step.new) - _size(step.old)
        return type(self)(entries, size)


def _size(entry: Entry | None) -> int:
    return entry.size if isinstance(entry, File) else 0
