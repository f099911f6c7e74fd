"""Quick checks of which commits a tree still has content from.

DEST has to hold something of what was synced there; otherwise its disk is not mounted.  A run that
fails leaves its commit among the attempted ones, and the next run compares each of them.  With an
upstream that never delivers one of its files, that list would grow with each run; so commits of
which nothing is left are dropped.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from huai_client.diff.selection import Selection
from huai_client.diff.table import compare_path
from huai_client.tree import DestinationError, PathError, View
from huai_client.tree.view import stat_entry
from huai_schema.codec.listing import Listing
from huai_schema.entries import Directory, Entry
from huai_schema.layout.snapshot import decode_listing
from huai_schema.paths import ROOT, RelPath, parent

_SAMPLES = 32
_STEPS = 1000
"""The number of directories to read for the names in the top one."""
_PATHS_MOST = 10_000


def check_destination(view: View, past: Iterable[Selection]) -> None:
    """Raise `DestinationError` if no top name of `past` exists: the disk may be unmounted.

    Not if one of `past` has no names, as with a filter that excludes everything.
    """
    samples = [list(_samples(selection)) for selection in past]
    # A filter may exclude everything: then an empty destination is right.
    if all(samples) and all(view.stat(path) is None for paths in samples for path in paths):
        raise DestinationError(
            f"{view.dest} holds nothing of what was synced there before",
            hint="check that its disk is mounted; --adopt fetches what is missing",
        )


def _samples(selection: Selection) -> Iterator[RelPath]:
    """Yield some mirrored names of the top directory, as far as they are quickly found.

    Names from one subdirectory would not do: it may have been removed by hand.
    """
    snapshot, rules = selection.snapshot, selection.rules
    for step in islice(snapshot.level(ROOT, snapshot.tree), _STEPS):
        if isinstance(step, Listing) and step.path == ROOT:
            leaves = (entry.path for entry in decode_listing(step) if entry.path)
            names = (path for path in leaves if rules.reaches(path, directory=False))
            yield from islice(names, _SAMPLES)
            continue
        path = step.path if isinstance(step, Listing) else step[0]
        if parent(path) == ROOT and rules.reaches(path, directory=True):
            yield path
    own = sorted(snapshot.own_directory(ROOT, snapshot.tree).children)
    spread = (RelPath(name) for name in own[:: max(1, len(own) // _SAMPLES)])
    mirrored = (path for path in spread if rules.reaches(path, directory=True))
    yield from islice(mirrored, _SAMPLES)


def holds_nothing_else(
    view: View, failed: Collection[RelPath], applied: Selection, target: Selection
) -> bool:
    """Return True if each path of `failed` is as in `applied` or as in `target`.

    No other path differs from `target`; so earlier attempts need not be compared again.  False also
    for directories, unreadable paths, and more than 10,000 paths, which are not checked.
    """
    if len(failed) > _PATHS_MOST:
        return False
    selected = [selection.entries_at(failed) for selection in (applied, target)]
    try:
        return all(
            _is_one_of(view, path, [entries.get(path) for entries in selected]) for path in failed
        )
    except PathError:
        return False


def _is_one_of(view: View, path: RelPath, entries: list[Entry | None]) -> bool:
    """Return True if the path is as in one of `entries` (None: missing); False for a directory."""
    if any(isinstance(entry, Directory) for entry in entries):
        return False
    local = stat_entry(view, path)
    if local is None:
        return None in entries
    if isinstance(local.entry, Directory):
        return False
    return any(entry and not compare_path(view, path, entry).differing for entry in entries)
