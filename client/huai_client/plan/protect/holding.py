"""Which directories of the tree hold something protected, and so have to stay.

Asks the tree for names.  Costs what is in the directories that are asked for; none is walked
twice.
"""

from typing import Protocol

from huai_client.plan.reader import TreeReader
from huai_client.tree.errors import PathError
from huai_schema.paths import RESERVED, ROOT, RelPath, ancestors, join


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
