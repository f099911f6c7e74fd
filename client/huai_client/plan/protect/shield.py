"""Leaves protected paths out of a comparison, and out of the findings of `verify`.

Rule: the planner sees only the comparison, so a path that is left out of it cannot be part of any
operation.
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
    """Return the comparison without protected paths, and without directories that hold one.

    Such a directory stays, even if a file is wanted in its place.  A hardlink whose leader is left
    out becomes a file of its own.
    """
    if not protection:
        return diff
    holding = Holding(tree, protection)
    left_out: set[RelPath] = set()
    candidates: list[Candidate] = []
    for candidate in sorted(diff.candidates, key=lambda each: path_order(each.path)):
        if protection.covers_candidate(candidate) or _removes_protected(candidate, holding):
            left_out.add(candidate.path)
        else:
            candidates.append(candidate)
    extraneous = [
        path
        for path in diff.extraneous
        if not protection.may_cover(path) and not _holds_protected(path, tree, holding)
    ]
    detach = [_detach(each, protection, left_out) for each in candidates]
    return diff._replace(candidates=detach, extraneous=extraneous)


def may_move(
    protection: Protection, undeletable: Undeletable, tree: TreeReader
) -> Callable[[RelPath, RelPath], bool]:
    """Return a function that permits the rename of a directory: (old path, new path)."""
    holding, staying = Holding(tree, protection), Holding(tree, undeletable)

    def may_rename(old: RelPath, new: RelPath) -> bool:
        if undeletable and (undeletable.may_cover(old) or staying.contains_protected(old)):
            return False
        if not protection:
            return True
        return protection.same_protection(old, new) and not holding.contains_protected(old)

    return may_rename


def without_expected(
    differences: Iterable[Difference], protection: Protection, tree: TreeReader
) -> Iterator[Difference]:
    """Yield `differences` without those that protected paths explain.

    These are the protected paths, extraneous directories that hold one, and the times of
    directories that directly contain one: they change whenever the administrator writes it.
    """
    holding = Holding(tree, protection)
    for difference in differences:
        if protection and _is_expected(difference, protection, tree, holding):
            continue
        yield difference


def _is_expected(
    difference: Difference, protection: Protection, tree: TreeReader, holding: Holding
) -> bool:
    if protection.may_cover(difference.path):
        return True
    if difference.kind is Kind.EXTRANEOUS:
        return _holds_protected(difference.path, tree, holding)
    if difference.kind is Kind.DIFFERS and difference.attributes == _TIMES:
        return is_directory(tree, difference.path) and holding.contains_directly(difference.path)
    return False


def _holds_protected(path: RelPath, tree: TreeReader, holding: Holding) -> bool:
    """Return True if `path` is a directory that holds a protected path."""
    return is_directory(tree, path) and holding.contains_protected(path)


def _removes_protected(candidate: Candidate, holding: Holding) -> bool:
    """Return True if `candidate` would remove a directory that holds a protected path."""
    goes = isinstance(candidate.have, Directory) and not isinstance(candidate.expected, Directory)
    return goes and holding.contains_protected(candidate.path)


def _detach(candidate: Candidate, protection: Protection, left_out: set[RelPath]) -> Candidate:
    target = candidate.expected
    if not isinstance(target, File) or target.link is None:
        return candidate
    alone = protection.detach(target)
    if target.link in left_out:
        alone = target._replace(link=None)
    if alone is target:
        return candidate
    # It may share its inode with a protected file, so it must not be changed in place.
    differing = candidate.differing - {"link"} | ({"link"} if candidate.links > 1 else set())
    return candidate._replace(expected=alone, differing=differing)
