"""How many files, directories and symlinks a module has: `Number of files` of `--stats`.

Without a filter the commit has the numbers.  With one the selected entries are counted: all of them
the first time, then only what has changed since.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from huai_client.huai_rsync.cache import recall
from huai_client.state.paths import ModulePlaces
from huai_schema.entries import Directory, Entry, File

if TYPE_CHECKING:
    from huai_client.filters import Rules
    from huai_client.plan.prepared import Prepared

_UNKNOWN = (0, 0, 0)


def entries_of(prepared: "Prepared", places: ModulePlaces, *, wanted: bool) -> tuple[int, int, int]:
    """Files, directories and symlinks of the planned commit; zeros unless `wanted`."""
    from huai_client.filters import Rules  # a poll counts nothing

    rules = Rules.from_key(prepared.filter)
    if not rules:
        totals = prepared.commit.info.totals
        return totals.files, totals.directories, totals.symlinks
    return _selected(prepared, places, rules) if wanted else _UNKNOWN


def _selected(prepared: "Prepared", places: ModulePlaces, rules: "Rules") -> tuple[int, int, int]:
    from huai_client.diff.selection import Selection
    from huai_client.diff.selections import diff_selections
    from huai_client.metadata.repository import Repository
    from huai_client.state.state import load
    from huai_schema.diff.changes import Change

    now = Selection(prepared.commit.snapshot, rules)
    state, repository = load(places.state), Repository(places.repository)
    known = recall(places, state.applied)
    if known is None or known.kinds is None or state.filter != prepared.filter:
        return _count(now.entries())
    if state.applied is None or not repository.has(state.applied):
        return _count(now.entries())
    past = Selection(repository.commit(state.applied).snapshot, rules)
    changes = [each for each in diff_selections(past, now) if isinstance(each, Change)]
    came = _count(each.new for each in changes if each.new is not None)
    went = _count(each.old for each in changes if each.old is not None)
    files, directories, symlinks = (
        before + more - less for before, more, less in zip(known.entries, came, went, strict=True)
    )
    return files, directories, symlinks


def _count(entries: Iterable[Entry]) -> tuple[int, int, int]:
    files = directories = others = 0
    for entry in entries:
        files += isinstance(entry, File)
        directories += isinstance(entry, Directory)
        others += not isinstance(entry, File | Directory)
    return files, directories, others
