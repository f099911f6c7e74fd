"""What a sync must not touch, and which directories of the tree hold such a thing.

`Protection` are the administrator's own paths: never deleted, replaced or written by huai.  A path
is protected if a pattern matches it or a directory above it.  Patterns are rsync's, as after
`--exclude`, so `/project/trace/my.host` is one path and `*.local` a name anywhere.

`Undeletable` is what rsync's receiving side keeps from deletion: the rules of a call that name that
side, `--filter='protect /project/'`, and each `--exclude` without `--delete-excluded`.  Unlike what
`protect` names in client.toml, such a path is written where the upstream has it.
Rule to keep: as in rsync a rule is asked only of what the upstream has not; below a directory
that stays for it everything stays.

`Holding` asks the tree for names.  It costs what is in the directories that are asked for; none is
walked twice.
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
        """`FilterError` for a pattern that is wrong."""
        self._rules = Rules.parse(
            [b"- " + each.encode("utf-8", "surrogateescape") for each in patterns], place="protect"
        )

    def __bool__(self) -> bool:
        """Whether there is any pattern."""
        return bool(self._rules)

    def covers(self, path: RelPath, *, directory: bool) -> bool:
        """Whether what stands at `path`, or should, is protected."""
        return bool(path) and not self._rules.reaches(path, directory=directory)

    def may_cover(self, path: RelPath) -> bool:
        """The same where it is not known whether `path` is a directory."""
        return self.covers(path, directory=False) or self.covers(path, directory=True)

    def covers_candidate(self, candidate: Candidate) -> bool:
        """Whether what is there is protected, or what should be there would be."""
        path = candidate.path
        entries = [each for each in (candidate.have, candidate.wanted) if each is not None]
        if any(self.covers(path, directory=isinstance(each, Directory)) for each in entries):
            return True
        return candidate.special and self.covers(path, directory=False)

    def same_protection(self, old: RelPath, new: RelPath) -> bool:
        """Whether neither of two directories is protected, nor any anchored pattern leads below.

        What is protected below by its name alone has to be looked for in the tree.
        """
        covered = self.covers(old, directory=True) or self.covers(new, directory=True)
        return not covered and self._rules.alike_below(old, new)

    def entries(self, wanted: Iterable[Entry]) -> Iterator[Entry]:
        """Those of a snapshot that are not protected."""
        for entry in wanted:
            if not self.covers(entry.path, directory=isinstance(entry, Directory)):
                yield self.detached(entry)

    def detached(self, entry: Entry) -> Entry:
        """The entry; as a file of its own if what it is a hardlink of is protected."""
        if not isinstance(entry, File) or entry.link is None:
            return entry
        return entry._replace(link=None) if self.covers(entry.link, directory=False) else entry


class Covering(Protocol):
    """Says what is protected."""

    def covers(self, path: RelPath, *, directory: bool) -> bool:
        """Whether what stands at `path`, or should, is protected."""


class Holding:
    """Answers for one tree, as it is when a directory is first asked for."""

    def __init__(self, tree: TreeReader, protection: Covering) -> None:
        """Nothing is read yet."""
        self._tree = tree
        self._protection = protection
        self._walked: set[RelPath] = set()
        self._holders: set[RelPath] = set()

    def contains_protected(self, path: RelPath) -> bool:
        """Whether anything below the directory `path` is protected, or cannot be looked at."""
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
        """What is protected in a directory, and the subdirectories that are not."""
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
    """The rules of one run."""

    def __init__(self, rules: Rules | None) -> None:
        """None: everything may be deleted."""
        self._rules = rules or EVERYTHING

    def __bool__(self) -> bool:
        """Whether there is any rule."""
        return bool(self._rules)

    def covers(self, path: RelPath, *, directory: bool) -> bool:
        """Whether `path` stays if the upstream has it not."""
        return self._rules.protected(path, directory=directory)

    def may_cover(self, path: RelPath) -> bool:
        """The same where it is not known whether `path` is a directory."""
        return self.covers(path, directory=False) or self.covers(path, directory=True)

    def drop_kept(self, diff: TreeDiff, tree: TreeReader) -> TreeDiff:
        """The comparison without deletions of what stays, and of what holds such a thing."""
        if not self:
            return diff
        holding = Holding(tree, self)
        whole: set[RelPath] = set()
        stay: set[RelPath] = set()
        gone = [each for each in diff.candidates if each.wanted is None]
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
