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

`Holding` reads the names in directories of the tree, each directory at most once.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from huai_client.diff.candidate import Candidate, TreeDiff
from huai_client.filters.rules import EVERYTHING, Rules
from huai_client.plan.reader import TreeReader
from huai_client.tree.errors import PathError
from huai_schema.entries import Directory, Entry, File
from huai_schema.paths import RESERVED, ROOT, RelPath, ancestors, join, path_order


class Protection:
    """The patterns of one module."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Parse the patterns; `FilterError` for a malformed one."""
        self.rules = Rules.parse(
            [b"- " + each.encode("utf-8", "surrogateescape") for each in patterns], place="protect"
        )
        """Rules that exclude the protected paths."""

    def __bool__(self) -> bool:
        """True if there is any pattern."""
        return bool(self.rules)

    def covers(self, path: RelPath, *, directory: bool) -> bool:
        """Return True if the present or wanted entry at `path` is protected."""
        return bool(path) and not self.rules.reaches(path, directory=directory)

    def may_cover(self, path: RelPath) -> bool:
        """Return True if `path` is protected as a directory or as any other entry."""
        return self.covers(path, directory=False) or self.covers(path, directory=True)

    def covers_candidate(self, candidate: Candidate) -> bool:
        """Return True if the present entry or the wanted one is protected."""
        path = candidate.path
        entries = [each for each in (candidate.have, candidate.expected) if each is not None]
        if any(self.covers(path, directory=isinstance(each, Directory)) for each in entries):
            return True
        return candidate.special and self.covers(path, directory=False)

    def same_protection(self, old: RelPath, new: RelPath) -> bool:
        """Return True if a move from `old` to `new` changes no protection by a pattern with a path.

        False if one of the directories is protected.  Paths that are protected by their name alone
        are not searched for: only the tree has them.
        """
        covered = self.covers(old, directory=True) or self.covers(new, directory=True)
        return not covered and self.rules.alike_below(old, new)

    def entries(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield the `entries` that are not protected, hardlinks detached."""
        for entry in entries:
            if not self.covers(entry.path, directory=isinstance(entry, Directory)):
                yield self.detach(entry)

    def detach(self, entry: Entry) -> Entry:
        """Return the entry; a hardlink whose leader is protected becomes a file of its own."""
        if not isinstance(entry, File) or entry.link is None:
            return entry
        return entry._replace(link=None) if self.covers(entry.link, directory=False) else entry


class Covering(Protocol):
    """`Protection` or `Undeletable`."""

    def covers(self, path: RelPath, *, directory: bool) -> bool:
        """Return True if the present or wanted entry at `path` is protected."""


class Holding:
    """The directories of one tree that hold a protected path, as first read."""

    def __init__(self, tree: TreeReader, protection: Covering) -> None:
        self._tree = tree
        self._protection = protection
        self._walked: set[RelPath] = set()
        self._holders: set[RelPath] = set()

    def contains_protected(self, path: RelPath) -> bool:
        """Return True if anything below the directory `path` is protected, or cannot be read."""
        if self._walked.isdisjoint((path, *ancestors(path))):
            self._walk(path)
            self._walked.add(path)
        return path in self._holders

    def contains_directly(self, path: RelPath) -> bool:
        """Return True if the directory `path` itself contains a protected name."""
        return bool(self._look(path)[0])

    def _walk(self, top: RelPath) -> None:
        pending = [top]
        while pending:
            path = pending.pop()
            protected, folders = self._look(path)
            if protected:
                self._holders.update((path, *ancestors(path)))
            pending += folders

    def _look(self, path: RelPath) -> tuple[list[RelPath], list[RelPath]]:
        """Return the protected paths in a directory, and its unprotected subdirectories."""
        try:
            leaves, folders = self._tree.listing(path)
        except PathError:
            return [path], []
        covers = self._protection.covers
        inside = [join(path, name) for name in folders if path != ROOT or name != RESERVED]
        protected = [each for each in inside if covers(each, directory=True)]
        protected += [
            each for each in (join(path, name) for name in leaves) if covers(each, directory=False)
        ]
        return protected, [each for each in inside if not covers(each, directory=True)]


class Undeletable:
    """The rules of one run that keep paths from deletion."""

    def __init__(self, rules: Rules | None) -> None:
        """Without `rules` everything may be deleted."""
        self._rules = rules or EVERYTHING

    def __bool__(self) -> bool:
        """True if there is any rule."""
        return bool(self._rules)

    def covers(self, path: RelPath, *, directory: bool) -> bool:
        """Return True if `path` stays if the upstream does not have it."""
        return self._rules.protected(path, directory=directory)

    def may_cover(self, path: RelPath) -> bool:
        """Return True if `path` stays as a directory or as any other entry."""
        return self.covers(path, directory=False) or self.covers(path, directory=True)

    def drop_kept(self, diff: TreeDiff, tree: TreeReader) -> TreeDiff:
        """Return the comparison without deletions of paths that stay and of those above."""
        if not self:
            return diff
        holding = Holding(tree, self)
        subtrees: set[RelPath] = set()
        stay: set[RelPath] = set()
        deletions = [each for each in diff.candidates if each.expected is None]
        for candidate in sorted(deletions, key=lambda each: path_order(each.path)):
            path, directory = candidate.path, isinstance(candidate.have, Directory)
            inside = not subtrees.isdisjoint(ancestors(path))
            if inside or self.covers(path, directory=directory):
                subtrees.add(path)
                stay.add(path)
            elif directory and holding.contains_protected(path):
                stay.add(path)
        candidates = [each for each in diff.candidates if each.path not in stay]
        return diff._replace(candidates=candidates)
