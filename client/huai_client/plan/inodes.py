"""Names that share an inode without being hardlinks of each other in the wanted snapshot.

Pure.  An interrupted run may have linked a file that moved, and its old name may be wanted
again by now; with `duplicates = "hardlink"` files of equal content share one.  A change
of attributes would reach all of them.
"""

from collections import defaultdict
from collections.abc import Iterator

from huai_client.diff.candidate import Candidate, TreeDiff
from huai_schema.entries import File
from huai_schema.paths import RelPath, path_order


def split_shared_inodes(diff: TreeDiff, *, may_share: bool) -> TreeDiff:
    """The comparison with "link" among the differences of those that need their own inode.

    `may_share`: files of equal content may share one until their attributes differ.  Else
    nothing but an interrupted run can have shared it, and then all its names are candidates.
    """
    found = diff.candidates
    shared: dict[tuple[int, int], list[Candidate]] = defaultdict(list)
    for each in found:
        if each.links > 1 and isinstance(each.have, File):
            shared[each.inode].append(each)
    parting = {
        path
        for names in shared.values()
        for path in (_changing(names) if may_share else _strays(names))
    }
    return diff._replace(
        candidates=[
            each._replace(differing=each.differing | {"link"}) if each.path in parting else each
            for each in found
        ]
    )


def _strays(names: list[Candidate]) -> Iterator[RelPath]:
    """All groups but the first have to leave an inode that several share."""
    groups = dict.fromkeys(
        each.wanted.link or each.path
        for each in sorted(names, key=lambda each: path_order(each.path))
        if isinstance(each.wanted, File)
    )
    yield from list(groups)[1:]


def _changing(names: list[Candidate]) -> Iterator[RelPath]:
    """What changes an inode that has names which are not known here, or stay as they are."""
    for each in names:
        wanted = each.wanted
        if isinstance(wanted, File) and wanted.link is None and each.differing:
            mine = sum(_belongs(name, each.path) for name in names)
            if mine < each.links:
                yield each.path


def _belongs(name: Candidate, leader: RelPath) -> bool:
    wanted = name.wanted
    return wanted is None or (isinstance(wanted, File) and leader in (wanted.path, wanted.link))
