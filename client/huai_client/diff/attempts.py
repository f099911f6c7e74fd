"""Which of the commits that were attempted a tree may still hold anything of.

Reads metadata and looks at single paths.  A run that fails leaves its commit among those that
were attempted, and each of them is compared by the next one; an upstream with one file that never
comes would make that ever longer.
"""

from collections.abc import Collection

from huai_client.diff.selection import Selection
from huai_client.tree import PathError, View
from huai_client.tree.local_entry import differences_here, stat_entry
from huai_schema.entries import Directory, Entry
from huai_schema.paths import RelPath

_PATHS_MOST = 10_000


def holds_nothing_else(
    view: View, failed: Collection[RelPath], applied: Selection, wanted: Selection
) -> bool:
    """Whether all of `failed`, where alone the tree is not as `wanted`, is as `applied` has it.

    Then earlier attempts need not be compared any more.  Not decided for directories, nor for very
    many paths: False.
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
    return any(entry is not None and not differences_here(view, found, entry) for entry in said)
