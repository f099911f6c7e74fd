"""Decides which operations have to wait after a failure, and which continue.

The rules, in one place:

1. A path that failed waits.  So do all paths below it, its hardlinks, directories that were to be
   moved to it, from it or out of it, and the deletions that make way for it.
2. An index or pointer may name any path of a certain directory, and waits while one of these
   waits.  The directory is: in a repository, its top; outside of repositories, the one to which
   the pattern of the publish rule is relative; by an administrator's rule, the top of the outermost
   repository around it, else the whole module.
3. A deletion waits while an index or pointer waits that may name the deleted path.  It also waits
   while anything waits in the same repository or, outside of repositories, in the same directory.
   Making way for an entry of another type and moving a directory away count as deletions.
4. Everything else continues.  Volatile files wait for others, and nothing waits for them.

So an index never names a file that is missing, no file is deleted that an index still names, and a
failure holds back no repository or directory that it does not concern.

Pure: a `Territory` knows the repositories.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from huai_client.diff.candidate import Move, Remove
from huai_client.plan.operations import PAYLOAD, Plan
from huai_schema.entries import Entry, File, Symlink
from huai_schema.paths import ROOT, RelPath, ancestors, parent


class Territory:
    """Groups the paths of a tree that belong together: here the whole tree is one repository."""

    def names_below(self, _path: RelPath, *, symlink: bool = False) -> RelPath | None:  # noqa: ARG002
        """Return the directory whose paths the index or pointer at `_path` may name.

        None for payload.
        """
        return ROOT

    def repository_of(self, _path: RelPath) -> RelPath | None:
        """Return the top of the outermost repository around `_path`; None outside of all."""
        return ROOT

    def is_volatile(self, _path: RelPath) -> bool:
        """Return True if the file at `_path` changes without a commit; nothing depends on it."""
        return False


ONE_REPOSITORY = Territory()


class Withholding:
    """The paths that wait; each failure adds its path and those that it holds back."""

    def __init__(self, territory: Territory = ONE_REPOSITORY) -> None:
        """Start without waiting paths."""
        self._territory = territory
        self._waits: set[RelPath] = set()
        self._above: set[RelPath] = set()
        """Directories above waiting paths that are not volatile."""
        self._nameable: set[RelPath] = set()
        """Directories that a waiting index or pointer may name."""
        self._repositories: set[RelPath] = set()
        """Tops of repositories in which a path waits."""
        self._folders: set[RelPath] = set()
        """Directories outside of repositories in which a path waits."""
        self._above_kept: set[RelPath] = set()
        """Directories above paths that were not deleted."""
        self._undeleted: set[RelPath] = set()
        """Paths that were not deleted."""
        self.withheld: set[RelPath] = set()
        """Paths that were held back because another one failed."""

    @property
    def nothing(self) -> bool:
        """True if no path waits or was kept, so that each operation may be done."""
        return not self._waits and not self._above_kept

    @property
    def paths(self) -> set[RelPath]:
        """All paths that failed or were held back; no other path differs from the snapshot."""
        return self._waits | self.withheld | self._undeleted

    def fail(self, path: RelPath, *, symlink: bool = False) -> None:
        """Record that `path` could not be published: it waits, with all paths below it."""
        if path in self._waits:
            return
        territory = self._territory
        self._waits.add(path)
        if territory.is_volatile(path):
            return
        self._above.update(ancestors(path))
        nameable = territory.names_below(path, symlink=symlink)
        if nameable is not None:
            self._nameable.add(nameable)
        repository = territory.repository_of(path)
        if repository is not None:
            self._repositories.add(repository)
        else:
            self._folders.add(parent(path))

    def refuse(self, top: RelPath, paths: Iterable[RelPath]) -> None:
        """Record that `paths` wait; they may name any path below `top`, whatever the territory."""
        self._nameable.add(top)
        for path in paths:
            self.fail(path)

    def waits(self, path: RelPath) -> bool:
        """Return True if `path`, or a directory above it, waits."""
        return bool(self._waits) and not self._waits.isdisjoint((path, *ancestors(path)))

    def makes(self, path: RelPath) -> bool:
        """Return True if the directory `path` may be made; else record that it is held back."""
        return not self.waits(path) or self._hold(path)

    def publishes(self, entry: Entry, stage: int) -> bool:
        """Return True if `entry`, a file or symlink of `stage`, may be published.

        Else records that it is held back.
        """
        if not self._waits:
            return True
        symlink = isinstance(entry, Symlink)
        linked = isinstance(entry, File) and entry.link is not None and self.waits(entry.link)
        if not linked and not self.waits(entry.path):
            if stage == PAYLOAD:
                return True
            nameable = self._territory.names_below(entry.path, symlink=symlink)
            if nameable is None or (nameable not in self._above and nameable not in self._waits):
                return True
        return self._hold(entry.path, symlink=symlink)

    def settles(self, entry: Entry) -> bool:
        """Return True if the attributes of `entry`, which is present, may be set."""
        return not self.waits(entry.path)

    def moves(self, move: Move) -> bool:
        """Return True if a directory may be moved; else record that both of its paths wait."""
        if not self._waits:
            return True
        free = not self.waits(move.new) and not self.waits(move.old)
        if free and not self._is_needed(move.old):
            return True
        self._hold(move.old)
        return self._hold(move.new)

    def makes_way(self, site: RelPath, paths: Iterable[RelPath]) -> bool:
        """Return True if `paths`, at and below `site`, may be deleted for an entry of another type.

        Else records that `site` waits.
        """
        if not self._waits:
            return True
        free = not self.waits(site) and site not in self._above
        if free and not any(self._is_needed(path) for path in paths):
            return True
        return self._hold(site)

    def removes(self, item: Remove) -> bool:
        """Return True if a deletion may be made; else record that it waits.

        Call it for the deepest paths first.
        """
        if self.nothing:
            return True
        path = item.path
        holds = item.directory and (path in self._above or path in self._above_kept)
        if not holds and not self.waits(path) and not self._is_needed(path):
            return True
        self.withheld.add(path)
        self.keep(path)
        return False

    def keep(self, path: RelPath) -> None:
        """Record that `path` was not deleted, so that the directories above it stay as well."""
        self._undeleted.add(path)
        self._above_kept.update(ancestors(path))

    def _is_needed(self, path: RelPath) -> bool:
        """Return True if a waiting index may name `path`, or its repository or folder waits."""
        if not self._nameable.isdisjoint((path, *ancestors(path))):
            return True
        repository = self._territory.repository_of(path)
        if repository is not None:
            return repository in self._repositories
        return parent(path) in self._folders

    def _hold(self, path: RelPath, *, symlink: bool = False) -> bool:
        """Record that `path` is held back; return False."""
        self.withheld.add(path)
        self.fail(path, symlink=symlink)
        return False

    def foresee(self, plan: Plan) -> None:
        """Record the paths of `plan` that have to wait for the failures so far.

        Call it before the first operation: moves and deletions that make way come before the
        publications that they depend on.
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
            for site, items in by_site(plan.clear).items():
                self.makes_way(site, [item.path for item in items])


def by_site(clear: Iterable[Remove]) -> dict[RelPath, list[Remove]]:
    """Return the deletions that make way, by the path of the new entry of another type."""
    items = list(clear)
    cleared = {item.path for item in items}
    sites: dict[RelPath, list[Remove]] = defaultdict(list)
    for item in items:
        above = [path for path in ancestors(item.path) if path in cleared]
        sites[above[-1] if above else item.path].append(item)
    return sites


def withhold(plan: Plan, withholding: Withholding) -> Plan:
    """Return the part of `plan` to execute after the failures in `withholding`; record the rest."""
    if withholding.nothing:
        return plan
    withholding.foresee(plan)
    moves = [move for move in plan.moves if withholding.moves(move)]
    unmoved = {move.new for move in plan.moves} - {move.new for move in moves}
    clear = [
        item
        for site, items in by_site(plan.clear).items()
        if withholding.makes_way(site, [item.path for item in items])
        for item in items
    ]
    blocked = unmoved | (by_site(plan.clear).keys() - {item.path for item in clear})
    return replace(
        plan,
        clear=clear,
        make=[path for path in plan.make if withholding.makes(path)],
        moves=moves,
        stages=[
            stage.restricted(partial(withholding.publishes, stage=number), withholding.settles)
            for number, stage in enumerate(plan.stages)
        ],
        removals=[item for item in plan.removals if withholding.removes(item)],
        directories=[
            directory
            for directory in plan.directories
            if blocked.isdisjoint((directory.path, *ancestors(directory.path)))
        ],
    )
