"""Quick checks of which commits a tree still has content from.

DEST has to hold something of what was synced there; otherwise its disk is not mounted.  A run that
fails leaves its commit among the attempted ones, and the next run compares each of them.  With an
upstream that never delivers one of its files, that list would grow with each run; so commits that
need not be compared any more are dropped.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from stat import S_ISDIR, S_ISREG
from typing import TypeGuard

from huai_client.diff.selection import Selection
from huai_client.diff.table import compare_path
from huai_client.tree import DestinationError, PathError, View
from huai_schema.codec.listing import Listing
from huai_schema.entries import Directory, Entry, File
from huai_schema.layout.snapshot import decode_listing
from huai_schema.paths import RESERVED, ROOT, RelPath, parent

_SAMPLES = 32
_STEPS = 1000
"""The number of directories to read for the names in the top one."""
_PATHS_MOST = 10_000
"""The number of paths to examine at a time."""


def check_destination(view: View, past: Iterable[Selection]) -> None:
    """Raise `DestinationError` if no top name of `past` exists: the disk may be unmounted.

    Not if one of `past` has no names, as with a filter that excludes everything.
    """
    samples = [list(_samples(selection)) for selection in past]
    # A filter may exclude everything: then an empty destination is right.
    if all(samples) and all(view.stat(path) is None for paths in samples for path in paths):
        raise _unmounted(view)


def check_not_empty(view: View) -> None:
    """Raise `DestinationError` if DEST is empty, where other programs may have replaced all."""
    leaves, directories = view.listing(ROOT)
    if not leaves and {*directories} <= {RESERVED}:
        raise _unmounted(view)


def _unmounted(view: View) -> DestinationError:
    return DestinationError(
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


def select_needed(
    view: View,
    failed: Collection[RelPath],
    applied: Selection,
    attempts: Sequence[Selection],
    target: Selection,
) -> Sequence[Selection]:
    """Return those of `attempts` that the next run has to compare, after a run to `target`.

    Every path but `failed` is as in `target`.  The next run compares `applied` and `target`, and so
    each path in which these differ.  An attempt is needed for content that it may have left there,
    and for paths in which they do not differ.  Returns all if a path cannot be read.
    """
    needed: set[int] = set()
    paths = sorted(failed)
    try:
        for start in range(0, len(paths), _PATHS_MOST):
            some = paths[start : start + _PATHS_MOST]
            entries = [each.entries_at(some) for each in (applied, target, *attempts)]
            for path in some:
                ends, past = [each.get(path) for each in entries[:2]], entries[2:]
                needed |= _needed_at(view, path, ends, [each.get(path) for each in past])
    except PathError:
        return attempts
    return [each for number, each in enumerate(attempts) if number in needed]


def _needed_at(
    view: View, path: RelPath, ends: list[Entry | None], past: list[Entry | None]
) -> set[int]:
    """Return the places in `past` of the attempts that are needed because of `path`.

    `ends` are the applied and the wanted entry, `past` those of the attempts.
    """
    status = view.stat(path)
    needed: set[int] = set()
    if status is not None and S_ISDIR(status.st_mode) and not isinstance(ends[1], Directory):
        # What an attempt has below it need not have failed by itself.
        needed = {number for number, entry in enumerate(past) if isinstance(entry, Directory)}
    elif status is not None and S_ISREG(status.st_mode):
        stat = status.st_size, status.st_mtime_ns
        same = [(n, each.digest) for n, each in enumerate(past) if _is_like(each, stat)]
        end_digests = {each.digest for each in ends if _is_like(each, stat)}
        needed = {number for number, digest in same if digest not in end_digests}
    if ends[0] == ends[1] and not _is_as(view, path, ends[1]):
        differing = [number for number, entry in enumerate(past) if entry != ends[1]]
        # A run may have left an entry that no snapshot has (`moves`).
        needed.update(differing[-1:] or range(len(past)))
    return needed


def _is_like(entry: Entry | None, stat: tuple[int, int]) -> TypeGuard[File]:
    """Return True for a file with this size and mtime."""
    return isinstance(entry, File) and (entry.size, entry.mtime) == stat


def _is_as(view: View, path: RelPath, entry: Entry | None) -> bool:
    """Return True if the path is as in `entry`; None: missing."""
    candidate = compare_path(view, path, entry)
    if entry and candidate.present:
        return not candidate.differing
    return entry is None and not candidate.present
