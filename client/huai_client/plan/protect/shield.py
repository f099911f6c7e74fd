"""Leaves protected paths out of a comparison, and out of the findings of `verify`.

Rule to keep: the planner sees only the comparison, so a path that is left out of it cannot be part
of any operation.
"""

from collections.abc import Callable, Iterable, Iterator

from huai_client.diff.candidate import Candidate, TreeDiff
from huai_client.diff.findings import Difference, Kind
from huai_client.plan.protect.protection import Holding, Protection, Undeletable
from huai_client.plan.reader import TreeReader, is_directory
from huai_schema.entries import Directory, File
from huai_schema.paths import RelPath, path_order

_TIMES = ("mtime",)


def drop_protected(diff: TreeDiff, protection: Protection, tree: TreeReader) -> TreeDiff:
    """The comparison without protected paths, and without directories that hold one.

    Such a directory stays, even if a file is wanted in its place.  A hardlink whose leader is left
    out becomes a file of its own.
    """
    if not protection:
        return diff
    holding = Holding(tree, protection)
    left_out: set[RelPath] = set()
    candidates: list[Candidate] = []
    for candidate in sorted(diff.candidates, key=lambda each: path_order(each.path)):
        if protection.covers_candidate(candidate) or _takes_away(candidate, holding):
            left_out.add(candidate.path)
        else:
            candidates.append(candidate)
    extraneous = [
        path
        for path in diff.extraneous
        if not protection.may_cover(path) and not _holder(path, tree, holding)
    ]
    detached = [_detached(each, protection, left_out) for each in candidates]
    return diff._replace(candidates=detached, extraneous=extraneous)


def may_move(
    protection: Protection, undeletable: Undeletable, tree: TreeReader
) -> Callable[[RelPath, RelPath], bool]:
    """A function that tells whether a directory may be renamed whole: (old path, new path)."""
    holding, staying = Holding(tree, protection), Holding(tree, undeletable)

    def answer(old: RelPath, new: RelPath) -> bool:
        if undeletable and (undeletable.may_cover(old) or staying.contains_protected(old)):
            return False
        if not protection:
            return True
        return protection.same_protection(old, new) and not holding.contains_protected(old)

    return answer


def without_expected(
    differences: Iterable[Difference], protection: Protection, tree: TreeReader
) -> Iterator[Difference]:
    """`differences` without those that protected paths explain.

    These are the protected paths, extraneous directories that hold one, and the times of
    directories that directly contain one: they change whenever the administrator writes it.
    """
    holding = Holding(tree, protection)
    for found in differences:
        if protection and _is_expected(found, protection, tree, holding):
            continue
        yield found


def _is_expected(
    found: Difference, protection: Protection, tree: TreeReader, holding: Holding
) -> bool:
    if protection.may_cover(found.path):
        return True
    if found.kind is Kind.EXTRANEOUS:
        return _holder(found.path, tree, holding)
    if found.kind is Kind.DIFFERS and found.attributes == _TIMES:
        return is_directory(tree, found.path) and holding.directly(found.path)
    return False


def _holder(path: RelPath, tree: TreeReader, holding: Holding) -> bool:
    """Whether a directory stands at `path` that holds something protected."""
    return is_directory(tree, path) and holding.contains_protected(path)


def _takes_away(candidate: Candidate, holding: Holding) -> bool:
    """Whether `candidate` would remove a directory that holds something protected."""
    goes = isinstance(candidate.have, Directory) and not isinstance(candidate.expected, Directory)
    return goes and holding.contains_protected(candidate.path)


def _detached(candidate: Candidate, protection: Protection, left_out: set[RelPath]) -> Candidate:
    wanted = candidate.expected
    if not isinstance(wanted, File) or wanted.link is None:
        return candidate
    alone = protection.detached(wanted)
    if wanted.link in left_out:
        alone = wanted._replace(link=None)
    if alone is wanted:
        return candidate
    # It may share its inode with a protected file, so it must not be changed in place.
    differing = candidate.differing - {"link"} | ({"link"} if candidate.links > 1 else set())
    return candidate._replace(expected=alone, differing=differing)
