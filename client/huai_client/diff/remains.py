"""What a tree still holds of the commits that it was made from: quick looks at single paths.

DEST has to hold something of what was synced there: else its disk is not mounted.  A run that
fails leaves its commit among the attempted ones, and the next run compares each of them.  With an
upstream that never has one of its files that list would grow with each run; so commits of which
nothing is left are found.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from huai_client.diff.selection import Selection
from huai_client.diff.table import compare_path
from huai_client.tree import DestinationError, PathError, View
from huai_client.tree.local_entry import stat_entry
from huai_schema.codec.listing import Listing
from huai_schema.entries import Directory, Entry
from huai_schema.layout.snapshot import EntryLimit, decode_listing
from huai_schema.paths import ROOT, RelPath, parent

_SAMPLES = 32
_STEPS = 1000
"""Directories that are read to find the names in the top one."""
_PATHS_MOST = 10_000


def check_destination(view: View, past: Iterable[Selection]) -> None:
    """Raise `DestinationError` if nothing is left of the tree: its disk is not mounted."""
    samples = [list(_samples(selection)) for selection in past]
    # A filter may have let nothing through: then an empty destination is right.
    if all(samples) and all(stat_entry(view, path) is None for paths in samples for path in paths):
        raise DestinationError(
            f"{view.dest} holds nothing of what was synced there before",
            hint="check that its disk is mounted; --adopt fetches what is missing",
        )


def _samples(selection: Selection) -> Iterator[RelPath]:
    """Some names of the top directory, files and directories, as far as that is quickly known.

    Names from one subdirectory would not do: that one may have been removed by hand.
    """
    snapshot, rules = selection.snapshot, selection.rules
    for step in islice(snapshot.level(ROOT, snapshot.tree, EntryLimit(snapshot.limit)), _STEPS):
        if isinstance(step, Listing) and step.path == ROOT:
            leaves = (entry.path for entry in decode_listing(step) if entry.path)
            shown = (path for path in leaves if rules.reaches(path, directory=False))
            yield from islice(shown, _SAMPLES)
            continue
        path = step.path if isinstance(step, Listing) else step[0]
        if parent(path) == ROOT and rules.reaches(path, directory=True):
            yield path
    own = sorted(snapshot.own_directory(ROOT, snapshot.tree).children)
    spread = (RelPath(name) for name in own[:: max(1, len(own) // _SAMPLES)])
    mirrored = (path for path in spread if rules.reaches(path, directory=True))
    yield from islice(mirrored, _SAMPLES)


def holds_nothing_else(
    view: View, failed: Collection[RelPath], applied: Selection, wanted: Selection
) -> bool:
    """Whether all of `failed`, the only paths that are not as `wanted`, are as in `applied`.

    Then earlier attempts need not be compared any more.  False also for directories, and for very
    many paths, which are not looked at.
    """
    if len(failed) > _PATHS_MOST:
        return False
    said = [selection.entries_at(failed) for selection in (applied, wanted)]
    try:
        return all(_is_one_of(view, path, [each.get(path) for each in said]) for path in failed)
    except PathError:
        return False


def _is_one_of(view: View, path: RelPath, said: list[Entry | None]) -> bool:
    if any(isinstance(entry, Directory) for entry in said):
        return False
    found = stat_entry(view, path)
    if found is None:
        return None in said
    if isinstance(found.entry, Directory):
        return False
    return any(entry and not compare_path(view, path, entry).differing for entry in said)
