"""What rsync's receiving side keeps from deletion: the rules of a call that name that side.

`--filter='protect /project/'`, and each `--exclude` without `--delete-excluded`.  Unlike what
`protect` names in client.toml, such a path is written where the upstream has it.
Rule to keep: as in rsync a rule is asked only of what the upstream has not; below a directory
that stays for it everything stays.
"""

from huai_client.diff.candidate import TreeDiff
from huai_client.filters.rules import EVERYTHING, Rules
from huai_client.plan.protect.holding import Holding
from huai_client.plan.reader import TreeReader
from huai_schema.entries import Directory
from huai_schema.paths import RelPath, ancestors, path_order


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
