"""Whether DEST still holds the tree that was synced there."""

from collections.abc import Iterable, Iterator
from itertools import islice

from huai_client.diff.selection import Selection
from huai_client.tree import DestinationError, View
from huai_client.tree.local_entry import stat_entry
from huai_schema.codec.listing import Listing
from huai_schema.layout.entry_limit import EntryLimit
from huai_schema.layout.snapshot import decode_listing
from huai_schema.paths import ROOT, RelPath, parent

_SAMPLES = 32


_STEPS = 1000


"""Directories that are gone through to find those of the top: small ones stand with all below."""


def check_destination(view: View, past: Iterable[Selection]) -> None:
    """The destination has to hold something of what was put there: else its disk is not mounted."""
    samples = [list(_samples(selection)) for selection in past]
    # A filter may have let nothing through; then an empty destination is one that is right.
    if all(samples) and all(stat_entry(view, path) is None for paths in samples for path in paths):
        raise DestinationError(
            f"{view.dest} holds nothing of what was synced there before",
            hint="is its disk mounted?  --adopt compares everything and fetches what is missing",
        )


def _samples(selection: Selection) -> Iterator[RelPath]:
    """What stands in the top directory, as far as it is quickly known: of each kind some.

    Never what is below one directory alone: somebody may have taken that one away.
    """
    snapshot, rules = selection.snapshot, selection.rules
    for step in islice(snapshot.level(ROOT, snapshot.tree, EntryLimit(snapshot.limit)), _STEPS):
        if isinstance(step, Listing) and step.path == ROOT:
            leaves = (entry.path for entry in decode_listing(step) if entry.path)
            shown = (path for path in leaves if rules.reaches(path, directory=False))
            yield from islice(shown, _SAMPLES)
            continue
        path = step.path if isinstance(step, Listing) else step[0]
        if parent(path) == ROOT and not rules.excludes_whole(path):
            yield path
    own = sorted(snapshot.own_directory(ROOT, snapshot.tree).children)
    spread = (RelPath(name) for name in own[:: max(1, len(own) // _SAMPLES)])
    yield from islice((path for path in spread if not rules.excludes_whole(path)), _SAMPLES)
