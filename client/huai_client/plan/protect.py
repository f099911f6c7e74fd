"""The paths that a sync must not touch, and the directories of the tree that hold one.

`Protection` has the patterns of `protect`: the administrator's own paths, which huai never deletes,
replaces or writes.  A path is protected if a pattern matches it or a directory above it.  Patterns
are rsync's, as after `--exclude`, so `/project/trace/my.host` is one path and `*.local` a name
anywhere.

`Undeletable` has the rules by which rsync's receiver keeps paths from deletion:
`--filter='protect /project/'`, and each `--exclude` without `--delete-excluded`.  Unlike the
paths of `protect`, these are written if the upstream has them.  Rule: as in rsync, a rule applies
only to paths that the upstream does not have; below a directory that stays by a rule everything
stays.

`ProtectedContents` reads the names in directories of the tree.  Rule: the planner sees only the
comparison, so a path that is left out of it cannot be part of any operation.
"""

from collections.abc import Callable, Iterable, Iterator
from stat import S_ISDIR
from typing import Protocol

from huai_client.diff.candidate import Candidate, Difference, DifferenceKind, TreeDiff
from huai_client.diff.selection import Selection
from huai_client.diff.table import CandidateTable
from huai_client.filters.rules import EVERYTHING, Rules
from huai_client.tree.errors import PathError
from huai_schema.entries import Directory, File
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RESERVED, ROOT, RelPath, ancestors, join, path_order


class StatResult(Protocol):
    """The part of `os.stat_result` that planning uses."""

    @property
    def st_mode(self) -> int:
        """File type and mode."""


class ReadableTree(Protocol):
    """A tree that planning reads and does not change."""

    def stat(self, path: RelPath) -> StatResult | None:
        """Return the status of `path` without following symlinks; None if it does not exist."""

    def listing(self, path: RelPath) -> tuple[list[bytes], list[bytes]]:
        """Return the names in a directory: leaves, then subdirectories; raises `PathError`."""


def is_directory(tree: ReadableTree, path: RelPath) -> bool:
    """Return True if `path` is a directory."""
    status = tree.stat(path)
    return status is not None and S_ISDIR(status.st_mode)


_TIMES = ("mtime",)


class Keeper:
    """Rules by which paths of the tree stay as they are."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def __bool__(self) -> bool:
        """True if there is any rule."""
        return bool(self.rules)

    def covers(self, path: RelPath, *, directory: bool) -> bool:
        """Return True if `path` stays."""
        return not self.rules.reaches(path, directory=directory)

    def may_cover(self, path: RelPath) -> bool:
        """Return True if `path` stays as a directory or as any other entry."""
        return self.covers(path, directory=False) or self.covers(path, directory=True)


class Protection(Keeper):
    """The patterns of one module, as rules that exclude the protected paths."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Parse the patterns; raises `FilterError` for a malformed one."""
        self._patterns = [each.encode("utf-8", "surrogateescape") for each in patterns]
        lines = [b"- " + each for each in self._patterns]
        super().__init__(Rules.parse(lines, place="protect"))

    def files(self, diff: TreeDiff, snapshot: Snapshot) -> Iterator[RelPath]:
        """Yield protected files of `snapshot`, and of the tree if `diff` compares all of it.

        Leaves out files that only the tree has, if they were in a snapshot and have no other name.
        """
        below = [each.rstrip(b"/") + b"/***" for each in self._patterns]
        included = [b"+ " + each for each in (*self._patterns, *below, b"*/")]
        selection = Selection(snapshot, Rules.parse([*included, b"- *"], place="protect"))
        yield from (each.path for each in selection.entries() if isinstance(each, File))
        shared = CandidateTable.of(diff.candidates).engine.shared()
        paths = (*(each.path for each in shared), *diff.extraneous)
        yield from (path for path in paths if self.covers(path, directory=False))

    def covers_candidate(self, candidate: Candidate) -> bool:
        """Return True if the present entry or the wanted one is protected."""
        entries = [each for each in (candidate.have, candidate.expected) if each is not None]
        kinds = {isinstance(each, Directory) for each in entries}
        kinds |= {False} if candidate.special else set()
        return any(self.covers(candidate.path, directory=kind) for kind in kinds)

    def same_protection(self, old: RelPath, new: RelPath) -> bool:
        """Return True if a move from `old` to `new` changes no protection by a pattern with a path.

        False if one of the directories is protected.  Paths that are protected by their name alone
        are not searched for: only the tree has them.
        """
        covered = self.covers(old, directory=True) or self.covers(new, directory=True)
        return not covered and self.rules.alike_below(old, new)


class Undeletable(Keeper):
    """The rules of one run that keep paths from deletion."""

    def __init__(self, rules: Rules | None) -> None:
        """Without `rules` everything may be deleted."""
        super().__init__(rules or EVERYTHING)

    def covers(self, path: RelPath, *, directory: bool) -> bool:
        """Return True if `path` stays if the upstream does not have it."""
        return self.rules.protects(path, directory=directory)

    def drop_kept(self, diff: TreeDiff, tree: ReadableTree) -> TreeDiff:
        """Return the comparison without deletions of protected paths and the directories above."""
        if not self:
            return diff
        contents = ProtectedContents(tree, self)
        subtrees: set[RelPath] = set()
        stay: set[RelPath] = set()
        deletions = [each for each in diff.candidates if each.expected is None]
        for candidate in sorted(deletions, key=lambda each: path_order(each.path)):
            path, directory = candidate.path, isinstance(candidate.have, Directory)
            inside = not subtrees.isdisjoint(ancestors(path))
            if inside or self.covers(path, directory=directory):
                subtrees.add(path)
                stay.add(path)
            elif directory and contents.contains_protected(path):
                stay.add(path)
        candidates = [each for each in diff.candidates if each.path not in stay]
        return diff._replace(candidates=candidates)


class ProtectedContents:
    """The directories that hold a protected path; `contains_protected` reads each only once."""

    def __init__(self, tree: ReadableTree, protection: Keeper) -> None:
        """Read nothing yet."""
        self._tree = tree
        self._protection = protection
        self._walked: set[RelPath] = set()
        self._containing: set[RelPath] = set()

    def contains_protected(self, path: RelPath) -> bool:
        """Return True if anything below the directory `path` is protected, or cannot be read."""
        if self._walked.isdisjoint((path, *ancestors(path))):
            pending = [path]
            while pending:
                folder = pending.pop()
                protected, folders = self._split(folder)
                if protected:
                    self._containing.update((folder, *ancestors(folder)))
                pending += folders
            self._walked.add(path)
        return path in self._containing

    def contains_directly(self, path: RelPath) -> bool:
        """Return True if a name in the directory `path` is protected, or it is unreadable."""
        return bool(self._split(path)[0])

    def _split(self, path: RelPath) -> tuple[set[RelPath], set[RelPath]]:
        """Return the protected paths in a directory, and its unprotected subdirectories.

        Leaves out `.~tmp~` at the top.  A directory that cannot be read counts as protected.
        """
        try:
            leaves, folders = self._tree.listing(path)
        except PathError:
            return {path}, set()
        covers = self._protection.covers
        inside = {join(path, name) for name in folders if path != ROOT or name != RESERVED}
        protected = {each for each in inside if covers(each, directory=True)}
        below = (join(path, name) for name in leaves)
        return protected | {
            each for each in below if covers(each, directory=False)
        }, inside - protected


def drop_protected(diff: TreeDiff, protection: Protection, tree: ReadableTree) -> TreeDiff:
    """Return the comparison without protected paths, and without directories that hold one.

    Such a directory stays, even if a file is wanted in its place.  A hardlink whose leader is left
    out becomes a file of its own.
    """
    if not protection:
        return diff
    contents = ProtectedContents(tree, protection)
    left_out: set[RelPath] = set()
    candidates: list[Candidate] = []
    for candidate in sorted(diff.candidates, key=lambda each: path_order(each.path)):
        goes = isinstance(candidate.have, Directory)
        goes = goes and not isinstance(candidate.expected, Directory)
        holds = goes and contents.contains_protected(candidate.path)
        if holds or protection.covers_candidate(candidate):
            left_out.add(candidate.path)
        else:
            candidates.append(candidate)
    extraneous = [
        path
        for path in diff.extraneous
        if not protection.may_cover(path) and not _contains_protected(path, tree, contents)
    ]
    detached = [_detach(each, protection, left_out) for each in candidates]
    return diff._replace(candidates=detached, extraneous=extraneous)


def may_move(
    protection: Protection, undeletable: Undeletable, tree: ReadableTree
) -> Callable[[RelPath, RelPath], bool]:
    """Return a function that permits the rename of a directory: (old path, new path)."""
    contents = ProtectedContents(tree, protection)
    staying_contents = ProtectedContents(tree, undeletable)

    def may_rename(old: RelPath, new: RelPath) -> bool:
        """Return True if nothing protected or undeletable is moved."""
        if undeletable and (undeletable.may_cover(old) or staying_contents.contains_protected(old)):
            return False
        if not protection:
            return True
        return protection.same_protection(old, new) and not contents.contains_protected(old)

    return may_rename


def without_expected(
    differences: Iterable[Difference], protection: Protection, tree: ReadableTree
) -> Iterator[Difference]:
    """Yield `differences` without those that protected paths explain.

    These are the protected paths, extraneous directories that hold one, and the times of
    directories that directly contain one: they change whenever the administrator writes it.
    """
    contents = ProtectedContents(tree, protection)

    def is_explained(difference: Difference) -> bool:
        """Return True if protected content explains the difference."""
        path = difference.path
        if difference.kind is DifferenceKind.UNREADABLE:
            return protection.may_cover(path)
        if protection.covers(path, directory=is_directory(tree, path)):
            return True
        if difference.kind is DifferenceKind.EXTRANEOUS:
            return _contains_protected(path, tree, contents)
        only_times = difference.kind is DifferenceKind.DIFFERS and difference.attributes == _TIMES
        return only_times and is_directory(tree, path) and contents.contains_directly(path)

    return (each for each in differences if not protection or not is_explained(each))


def _contains_protected(path: RelPath, tree: ReadableTree, contents: ProtectedContents) -> bool:
    """Return True if `path` is a directory that holds a protected path."""
    return is_directory(tree, path) and contents.contains_protected(path)


def _detach(candidate: Candidate, protection: Protection, left_out: set[RelPath]) -> Candidate:
    """Return the candidate without the link to a leader that is protected or left out.

    If its file has several names, it needs an inode of its own.
    """
    target = candidate.expected
    if not isinstance(target, File) or target.link is None:
        return candidate
    alone = protection.rules.detach(target)
    if target.link in left_out:
        alone = target._replace(link=None)
    if alone is target:
        return candidate
    # It may share its inode with a protected file, so it must not be changed in place.
    differing = candidate.differing - {"link"} | ({"link"} if candidate.links > 1 else set())
    return candidate._replace(expected=alone, differing=differing)
