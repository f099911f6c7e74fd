"""Names that share an inode and are no hardlinks of each other in the wanted snapshot.

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
    """The comparison with "link" among the differences of files that need an inode of their own.

    `may_share`: files of equal content share an inode until their attributes differ.  Without it
    only an interrupted run shares inodes, and all names of such an inode are candidates.
    """
    table = CandidateTable.of(diff.candidates)
    shared: dict[tuple[int, int], list[Candidate]] = defaultdict(list)
    for each in table.engine.shared():
        shared[each.inode].append(each)
    table.engine.part(
        {
            path
            for names in shared.values()
            for path in (_changing(names) if may_share else _strays(names))
        }
    )
    return diff._replace(candidates=table)


def accept_shared_inodes(diff: TreeDiff) -> TreeDiff:
    """Return the comparison without files that differ in nothing but in sharing an inode.

    For `duplicates = "hardlink"`, where the whole tree was compared.  Where a change of one name
    would change the inode, none of its names is left out.
    """
    table = CandidateTable.of(diff.candidates)
    inodes: dict[tuple[int, int], list[Candidate]] = defaultdict(list)
    for each in table.engine.shared():
        inodes[each.inode].append(each)
    shared = [name for names in inodes.values() if all(map(_only_shares, names)) for name in names]
    sizes = {each.have.size for each in shared if isinstance(each.have, File)}
    right = {each.candidate.path for each in table.sources(sizes) if each.right}
    accepted = right.intersection(each.path for each in shared)
    if not accepted:
        return diff
    return diff._replace(candidates=[each for each in table if each.path not in accepted])


def _only_shares(candidate: Candidate) -> bool:
    wanted = candidate.expected
    return isinstance(wanted, File) and wanted.link is None and candidate.differing == {"link"}


def _strays(names: list[Candidate]) -> Iterator[RelPath]:
    """The leaders of all groups but the first: one group keeps the inode that several share."""
    groups = dict.fromkeys(
        each.expected.link or each.path
        for each in sorted(names, key=lambda each: path_order(each.path))
        if isinstance(each.expected, File)
    )
    yield from list(groups)[1:]


def _changing(names: list[Candidate]) -> Iterator[RelPath]:
    """Files that would change an inode which has names outside of their own hardlink group."""
    for each in names:
        wanted = each.expected
        if isinstance(wanted, File) and wanted.link is None and each.differing:
            mine = sum(_belongs(name, each.path) for name in names)
            if mine < each.links:
                yield each.path


def _belongs(name: Candidate, leader: RelPath) -> bool:
    wanted = name.expected
    return wanted is None or (isinstance(wanted, File) and leader in (wanted.path, wanted.link))
