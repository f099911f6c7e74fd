"""Which paths a sync must not touch, and which directories of the tree hold such a path.

`Protection` has the patterns of `protect`: the administrator's own paths, which huai never deletes,
replaces or writes.  A path is protected if a pattern matches it or a directory above it.  Patterns
are rsync's, as after `--exclude`, so `/project/trace/my.host` is one path and `*.local` a name
anywhere.

`Undeletable` has the rules by which rsync's receiver keeps paths from deletion:
`--filter='protect /project/'`, and each `--exclude` without `--delete-excluded`.  Other than the
paths of `protect`, these are written if the upstream has them.  Rule to keep: as in rsync, a rule
applies only to paths that the upstream does not have; below a directory that stays by a rule
everything stays.

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
        """Raises `FilterError` for a malformed pattern."""
        self.rules = Rules.parse(
            [b"- " + each.encode("utf-8", "surrogateescape") for each in patterns], place="protect"
        )
        """Exclude what is protected."""

    def __bool__(self) -> bool:
        """Whether there is any pattern."""
        return bool(self.rules)

    def covers(self, path: RelPath, *, directory: bool) -> bool:
        """Whether what stands at `path`, or should, is protected."""
        return bool(path) and not self.rules.reaches(path, directory=directory)

    def may_cover(self, path: RelPath) -> bool:
        """Whether `path` is protected as a directory or as anything else."""
        return self.covers(path, directory=False) or self.covers(path, directory=True)

    def covers_candidate(self, candidate: Candidate) -> bool:
        """Whether the present entry or the wanted one is protected."""
        path = candidate.path
        entries = [each for each in (candidate.have, candidate.expected) if each is not None]
        if any(self.covers(path, directory=isinstance(each, Directory)) for each in entries):
            return True
        return candidate.special and self.covers(path, directory=False)

    def same_protection(self, old: RelPath, new: RelPath) -> bool:
        """Whether a move from `old` to `new` changes no protection by a pattern with a path.

        False if one of the directories is protected.  Paths that are protected by their name alone
        are not looked for: only the tree has them.
        """
        covered = self.covers(old, directory=True) or self.covers(new, directory=True)
        return not covered and self.rules.alike_below(old, new)

    def entries(self, wanted: Iterable[Entry]) -> Iterator[Entry]:
        """The entries of `wanted` that are not protected, hardlinks detached."""
        for entry in wanted:
            if not self.covers(entry.path, directory=isinstance(entry, Directory)):
                yield self.detached(entry)

    def detached(self, entry: Entry) -> Entry:
        """The entry; a hardlink whose leader is protected becomes a file of its own."""
        if not isinstance(entry, File) or entry.link is None:
            return entry
        return entry._replace(link=None) if self.covers(entry.link, directory=False) else entry


class Covering(Protocol):
    """`Protection` or `Undeletable`."""

    def covers(self, path: RelPath, *, directory: bool) -> bool:
        """Whether what stands at `path`, or should, is protected."""


class Holding:
    """The directories of one tree that hold a protected path, as when each was first read."""

    def __init__(self, tree: TreeReader, protection: Covering) -> None:
        self._tree = tree
        self._protection = protection
        self._walked: set[RelPath] = set()
        self._holders: set[RelPath] = set()

    def contains_protected(self, path: RelPath) -> bool:
        """Whether anything below the directory `path` is protected, or cannot be read."""
        if self._walked.isdisjoint((path, *ancestors(path))):
            self._walk(path)
            self._walked.add(path)
        return path in self._holders

    def directly(self, path: RelPath) -> bool:
        """Whether the directory `path` itself has a protected name in it."""
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
        """The protected paths directly in a directory, and its unprotected subdirectories."""
        try:
            leaves, folders = self._tree.listing(path)
        except PathError:
            return [path], []
        covers = self._protection.covers
        inside = [join(path, name) for name in folders if path != ROOT or name != RESERVED]
        found = [each for each in inside if covers(each, directory=True)]
        found += [
            each for each in (join(path, name) for name in leaves) if covers(each, directory=False)
        ]
        return found, [each for each in inside if not covers(each, directory=True)]


class Undeletable:
    """The rules of one run that keep paths from deletion."""

    def __init__(self, rules: Rules | None) -> None:
        """Without `rules` everything may be deleted."""
        self._rules = rules or EVERYTHING

    def __bool__(self) -> bool:
        """Whether there is any rule."""
        return bool(self._rules)

    def covers(self, path: RelPath, *, directory: bool) -> bool:
        """Whether `path` stays if the upstream does not have it."""
        return self._rules.protected(path, directory=directory)

    def may_cover(self, path: RelPath) -> bool:
        """Whether `path` stays as a directory or as anything else."""
        return self.covers(path, directory=False) or self.covers(path, directory=True)

    def drop_kept(self, diff: TreeDiff, tree: TreeReader) -> TreeDiff:
        """The comparison without deletions of paths that stay, and of directories above them."""
        if not self:
            return diff
        holding = Holding(tree, self)
        whole: set[RelPath] = set()
        stay: set[RelPath] = set()
        gone = [each for each in diff.candidates if each.expected is None]
        for candidate in sorted(gone, key=lambda each: path_order(each.path)):
            path, directory = candidate.path, isinstance(candidate.have, Directory)
            inside = not whole.isdisjoint(ancestors(path))
            if inside or self.covers(path, directory=directory):
                whole.add(path)
                stay.add(path)
            elif directory and holding.contains_protected(path):
                stay.add(path)
        kept = [each for each in diff.candidates if each.path not in stay]
        return diff._replace(candidates=kept)
