"""What has to wait when something failed, and what goes on.

The rule, in one place:

1. A path that failed waits, and with it all below it, each hardlink of it, each directory that
   was to be moved to it, from it or out of it, and what stands in its way.
2. An index or pointer names things: those below the top of its repository; outside of
   repositories, those below the directory from which the pattern of its publish rule is seen; by
   a rule of an administrator, those of the outermost repository around it, else the whole module.
   Where any of them waits, it waits as well.
3. A deletion waits while an index or pointer waits that may name what is deleted; while anything
   waits in the same repository; outside of repositories, in the same directory.  Making way for
   an entry of another type, and moving a directory away, are deletions too.
4. All else goes on.  Volatile files wait for others, and nothing waits for them.

So an index never names what is not there yet, and nothing goes that an index still names, however
much fails; and no failure holds up a repository, or a directory, that has nothing to do with it.

Pure: what the repositories are is asked of a `Territory`.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from huai_client.diff.candidate import Move
from huai_client.plan.operations import PAYLOAD, Plan, Remove, Stage
from huai_schema.entries import Entry, File, Symlink
from huai_schema.paths import ROOT, RelPath, ancestors, parent


class Territory(Protocol):
    """Says what belongs together in a tree (`publishing.order` does)."""

    def names_below(self, path: RelPath, *, symlink: bool = False) -> RelPath | None:
        """The directory whose content the index or pointer `path` may name; None: it is neither."""

    def repository_of(self, path: RelPath) -> RelPath | None:
        """The top of the outermost repository that `path` is in; None: it is in none."""

    def is_volatile(self, path: RelPath) -> bool:
        """Whether a file changes without a commit, so that nothing depends on it."""


class _OneRepository:
    """The whole tree is one."""

    def names_below(self, _path: RelPath, *, symlink: bool = False) -> RelPath | None:  # noqa: ARG002 - as `Territory`
        return ROOT

    def repository_of(self, _path: RelPath) -> RelPath | None:
        return ROOT

    def is_volatile(self, _path: RelPath) -> bool:
        return False


ONE_REPOSITORY = _OneRepository()
"""For trees of which no more is known."""


class Withholding:
    """What waits by now; grows with each failure, and with what it holds back."""

    def __init__(self, territory: Territory = ONE_REPOSITORY) -> None:
        """Nothing waits."""
        self._territory = territory
        self._waits: set[RelPath] = set()
        self._above: set[RelPath] = set()
        """Directories above what waits, without volatile files."""
        self._named: set[RelPath] = set()
        """Directories that an index or pointer names which waits."""
        self._repositories: set[RelPath] = set()
        self._folders: set[RelPath] = set()
        """Directories outside of repositories in which something waits."""
        self._kept: set[RelPath] = set()
        """Directories above deletions that wait."""
        self._stays: set[RelPath] = set()
        """What could not be deleted."""
        self.held: set[RelPath] = set()
        """What was not done because something else failed."""

    @property
    def nothing(self) -> bool:
        """Whether nothing waits."""
        return not self._waits

    @property
    def paths(self) -> set[RelPath]:
        """What failed or was held back: nothing else differs from what is wanted."""
        return self._waits | self.held | self._stays

    def fail(self, path: RelPath, *, symlink: bool = False) -> None:
        """What was to stand at `path` does not, nor anything below it."""
        if path in self._waits:
            return
        territory = self._territory
        self._waits.add(path)
        if territory.is_volatile(path):
            return
        self._above.update(ancestors(path))
        named = territory.names_below(path, symlink=symlink)
        if named is not None:
            self._named.add(named)
        repository = territory.repository_of(path)
        if repository is not None:
            self._repositories.add(repository)
        else:
            self._folders.add(parent(path))

    def waits(self, path: RelPath) -> bool:
        """Whether `path`, or a directory above it, waits."""
        return bool(self._waits) and not self._waits.isdisjoint((path, *ancestors(path)))

    def makes(self, path: RelPath) -> bool:
        """Whether the directory `path` may be made."""
        return not self.waits(path) or self._hold(path)

    def publishes(self, entry: Entry, stage: int) -> bool:
        """Whether a file or symlink of `stage` may be published."""
        if not self._waits:
            return True
        symlink = isinstance(entry, Symlink)
        linked = isinstance(entry, File) and entry.link is not None and self.waits(entry.link)
        if not linked and not self.waits(entry.path):
            if stage == PAYLOAD:
                return True
            named = self._territory.names_below(entry.path, symlink=symlink)
            if named is None or (named not in self._above and named not in self._waits):
                return True
        return self._hold(entry.path, symlink=symlink)

    def settles(self, entry: Entry) -> bool:
        """Whether attributes alone may be set."""
        return not self.waits(entry.path)

    def moves(self, move: Move) -> bool:
        """Whether a directory may be moved."""
        if not self._waits:
            return True
        free = not self.waits(move.new) and not self.waits(move.old)
        if free and not self._is_needed(move.old):
            return True
        self._hold(move.old)
        return self._hold(move.new)

    def makes_way(self, site: RelPath, paths: Iterable[RelPath]) -> bool:
        """Whether all of `paths`, at and below `site`, may go for an entry of another type."""
        if not self._waits:
            return True
        free = not self.waits(site) and site not in self._above
        if free and not any(self._is_needed(path) for path in paths):
            return True
        return self._hold(site)

    def removes(self, item: Remove) -> bool:
        """Whether a deletion may be made; they come deepest first."""
        if not self._waits and not self._kept:
            return True
        path = item.path
        holds = item.directory and (path in self._above or path in self._kept)
        if not holds and not self.waits(path) and not self._is_needed(path):
            return True
        self.held.add(path)
        self.keep(path)
        return False

    def keep(self, path: RelPath) -> None:
        """What was to be deleted at `path` is still there, and so are the directories above."""
        self._stays.add(path)
        self._kept.update(ancestors(path))

    def _is_needed(self, path: RelPath) -> bool:
        """Whether something that waits may name `path`, or is of its repository or directory."""
        if not self._named.isdisjoint((path, *ancestors(path))):
            return True
        repository = self._territory.repository_of(path)
        if repository is not None:
            return repository in self._repositories
        return parent(path) in self._folders

    def _hold(self, path: RelPath, *, symlink: bool = False) -> bool:
        self.held.add(path)
        self.fail(path, symlink=symlink)
        return False

    def foresee(self, plan: Plan) -> None:
        """Find out what of `plan` has to wait for what is known to have failed.

        Before its first step: what makes way or is moved goes before its successor comes.
        """
        size = -1
        while size != len(self._waits):
            size = len(self._waits)
            for number, stage in enumerate(plan.stages):
                entries: list[Entry] = [*stage.fetches, *stage.links, *stage.symlinks]
                for entry in entries:
                    self.publishes(entry, number)
            for move in plan.moves:
                self.moves(move)
            for site, items in sites(plan.clear).items():
                self.makes_way(site, [item.path for item in items])


def sites(clear: Iterable[Remove]) -> dict[RelPath, list[Remove]]:
    """What makes way, by the path at which something of another type is to stand."""
    items = list(clear)
    cleared = {item.path for item in items}
    found: dict[RelPath, list[Remove]] = defaultdict(list)
    for item in items:
        above = [path for path in ancestors(item.path) if path in cleared]
        found[above[-1] if above else item.path].append(item)
    return found


def withhold(plan: Plan, withholding: Withholding) -> Plan:
    """The part of `plan` that may be carried out, by what is known to have failed."""
    if withholding.nothing:
        return plan
    withholding.foresee(plan)
    moves = [move for move in plan.moves if withholding.moves(move)]
    unmoved = {move.new for move in plan.moves} - {move.new for move in moves}
    clear = [
        item
        for site, items in sites(plan.clear).items()
        if withholding.makes_way(site, [item.path for item in items])
        for item in items
    ]
    blocked = unmoved | (sites(plan.clear).keys() - {item.path for item in clear})
    return replace(
        plan,
        clear=clear,
        make=[path for path in plan.make if withholding.makes(path)],
        moves=moves,
        stages=[_stage(stage, number, withholding) for number, stage in enumerate(plan.stages)],
        removals=[item for item in plan.removals if withholding.removes(item)],
        directories=[
            directory
            for directory in plan.directories
            if blocked.isdisjoint((directory.path, *ancestors(directory.path)))
        ],
    )


def _stage(stage: Stage, number: int, withholding: Withholding) -> Stage:
    def published(entry: Entry) -> bool:
        return withholding.publishes(entry, number)

    return replace(
        stage,
        fetches=[each for each in stage.fetches if published(each)],
        links=[each for each in stage.links if published(each)],
        symlinks=[each for each in stage.symlinks if published(each)],
        attributes=[each for each in stage.attributes if withholding.settles(each)],
    )
