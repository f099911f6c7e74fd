"""Names that share an inode and are not hardlinks of each other in the wanted snapshot.

Pure.  There are two causes.  An interrupted run linked a file to its new name, and its old name is
wanted again.  Or `duplicates = "hardlink"` made files of equal content share an inode.  Changing
the attributes of one name would change those of the others.
"""

from collections import defaultdict
from collections.abc import Iterator

from huai_client.diff.candidate import Candidate, TreeDiff
from huai_client.diff.table import CandidateTable
from huai_schema.entries import File
from huai_schema.paths import RelPath, path_order


def split_shared_inodes(diff: TreeDiff, *, may_share: bool) -> TreeDiff:
    """Add "link" to the differences of files that need an inode of their own.

    `may_share`: files of equal content share an inode until their attributes differ.  Without it
    only an interrupted run shares inodes, and all names of such an inode are candidates.
    """
    table = CandidateTable.of(diff.candidates)
    shared: dict[tuple[int, int], list[Candidate]] = defaultdict(list)
    for name in table.engine.shared():
        shared[name.inode].append(name)
    table.engine.part(
        {
            path
            for names in shared.values()
            for path in (_changing(names) if may_share else _other_leaders(names))
        }
    )
    return diff._replace(candidates=table)


def accept_shared_inodes(diff: TreeDiff) -> TreeDiff:
    """Return the comparison without files whose only difference is a shared inode.

    For `duplicates = "hardlink"`, after a comparison of the whole tree.  Where a change of one name
    would change the inode, none of its names is left out.
    """
    table = CandidateTable.of(diff.candidates)
    inodes: dict[tuple[int, int], list[Candidate]] = defaultdict(list)
    for entry in table.engine.shared():
        inodes[entry.inode].append(entry)
    shared = [
        name for names in inodes.values() if all(map(_only_shares_inode, names)) for name in names
    ]
    sizes = {entry.have.size for entry in shared if isinstance(entry.have, File)}
    right = {entry.candidate.path for entry in table.sources(sizes) if entry.right}
    accepted = right.intersection(entry.path for entry in shared)
    if not accepted:
        return diff
    return diff._replace(candidates=[entry for entry in table if entry.path not in accepted])


def _only_shares_inode(candidate: Candidate) -> bool:
    entry = candidate.expected
    return isinstance(entry, File) and entry.link is None and candidate.differing == {"link"}


def _other_leaders(names: list[Candidate]) -> Iterator[RelPath]:
    """Yield the leaders of all groups but the first: one group keeps the shared inode."""
    groups = dict.fromkeys(
        each.expected.link or each.path
        for each in sorted(names, key=lambda each: path_order(each.path))
        if isinstance(each.expected, File)
    )
    yield from list(groups)[1:]


def _changing(names: list[Candidate]) -> Iterator[RelPath]:
    """Yield files that would change an inode with names outside of their own hardlink group."""
    for candidate in names:
        entry = candidate.expected
        if isinstance(entry, File) and entry.link is None and candidate.differing:
            group_size = sum(_belongs(name, candidate.path) for name in names)
            if group_size < candidate.links:
                yield candidate.path


def _belongs(name: Candidate, leader: RelPath) -> bool:
    entry = name.expected
    return entry is None or (isinstance(entry, File) and leader in (entry.path, entry.link))
