"""Symlinks that lead out of the tree.

Pure.  Such a symlink is mirrored unchanged and never followed, and a warning is printed; with
`safe_links` it is left out, and deleted where an earlier run made it.
"""

from huai_client.diff.candidate import Candidate, TreeDiff
from huai_client.diff.table import CandidateTable
from huai_schema.entries import Entry, Symlink
from huai_schema.paths import RelPath


def points_outside(path: RelPath, target: bytes) -> bool:
    """Return True if a symlink at `path` points to an absolute path or above the module."""
    if target.startswith(b"/"):
        return True
    depth = path.count(b"/")
    for name in target.split(b"/"):
        if name == b"..":
            depth -= 1
        elif name not in (b"", b"."):
            depth += 1
        if depth < 0:
            return True
    return False


def without_unsafe(diff: TreeDiff) -> tuple[TreeDiff, RelPath | None]:
    """Return the comparison without unsafe symlinks, and the path of one, or None without any.

    An existing unsafe symlink is removed; anything else at such a path stays.
    """
    table = CandidateTable.of(diff.candidates)
    unsafe = next((each.path for each in table.engine.symlinks() if is_unsafe(each.expected)), None)
    if unsafe is None:
        return diff, None
    left = [each for each in map(_without_unsafe, table) if each is not None]
    return diff._replace(candidates=left), unsafe


def _without_unsafe(candidate: Candidate) -> Candidate | None:
    """Return the candidate without an unsafe symlink; None if nothing is left to do."""
    if not is_unsafe(candidate.expected):
        return candidate
    if not is_unsafe(candidate.have):
        return None
    return candidate._replace(expected=None, differing=frozenset())


def is_unsafe(entry: Entry | None) -> bool:
    """Return True if `entry` is a symlink that rsync's `--safe-links` leaves out.

    By rsync's rule a target with `..` behind a name or at the end is unsafe too, wherever it leads
    (rsync's util1.c, `unsafe_symlink`).
    """
    if not isinstance(entry, Symlink):
        return False
    if not entry.target or entry.target.endswith(b"/.."):
        return True
    names = [name for name in entry.target.split(b"/") if name]
    inside = [name for name in names if name != b".."]
    climbs_again = bool(inside) and b".." in names[names.index(inside[0]) :]
    return climbs_again or points_outside(entry.path, entry.target)
