"""Looks at single paths of a downstream tree, many at a time.

Reads attributes, never content; changes nothing.  Quickest in tree order: each directory is opened
once.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

from huai_client.tree.errors import path_error
from huai_client.tree.local_entry import LocalEntry
from huai_client.tree.observed import MATCH, MISSING, RECORD, Record, attributes, seen
from huai_client.tree.view import View
from huai_schema.entries import Entry
from huai_schema.paths import RelPath

Place: TypeAlias = tuple[RelPath, Entry | None]
"""A path, and the entry that should be there; None: nothing, or whatever it is."""

_BATCH = 10_000
"""Places that are looked at in one call."""


class Observed(NamedTuple):
    """What stands at one path."""

    found: LocalEntry | None
    """None: nothing, or a path above is no directory."""
    differing: frozenset[str]
    """As `local_entry.differences` says it."""


_NOTHING = Observed(None, frozenset())


def survey(view: View, places: Iterable[Place]) -> Iterator[Observed]:
    """What stands at each of `places`, in their order.

    Raises:
        PathError: one of them cannot be read, or the leader of a hardlink that is wanted.
    """
    left = iter(places)
    while batch := [*islice(left, _BATCH)]:
        yield from _looked_at(view, batch)


def _looked_at(view: View, places: Sequence[Place]) -> Iterator[Observed]:
    records, text = view.survey(places)
    paths = (path for path, _ in places)
    begin = 0
    for record in map(Record._make, RECORD.iter_unpack(records)):
        said, begin = text[begin : record.text_end], record.text_end
        if record.kind == MISSING:
            yield from (_NOTHING for _ in islice(paths, record.size))
        elif record.kind == MATCH:
            found = seen(next(paths), record, said, view.names)
            yield Observed(found, attributes(record.attributes))
        else:
            raise path_error(RelPath(said), record.errno)
