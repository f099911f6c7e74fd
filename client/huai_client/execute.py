"""Carries out a plan: the order of the steps, and what a failure stops.

Knows no policy: what to do was decided by the plan, how each step is done safely is the
tree's.  Rule: nothing is deleted, and nothing of a later stage is published, after
something before it failed.  All files get their attributes before the first is published, so
that a stage is renames, one after the other.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple, TypeVar

from huai_client.plans.operations import Plan, Remove, Stage
from huai_client.plans.stages import PAYLOAD, STAGES
from huai_client.tree import PathError, Staged, StorageError, StrangersError, Tree
from huai_schema.entries import Directory, Entry, File
from huai_schema.paths import RelPath

T = TypeVar("T")


class Step(StrEnum):
    """The kinds of steps, in the order in which a run meets them."""

    CLEAR = "clear"
    MAKE = "make"
    MOVE = "move"
    PUBLISH = "publish"
    LINK = "link"
    SYMLINK = "symlink"
    ATTRIBUTES = "attributes"
    REMOVE = "remove"
    DIRECTORY = "directory"


class Problem(NamedTuple):
    """A path that could not be brought to where it should be."""

    path: RelPath
    reason: str


class Counts(NamedTuple):
    """How many steps of each kind were done, in the order of `Step`."""

    cleared: int
    made: int
    moved: int
    published: int
    linked: int
    symlinked: int
    attributes: int
    removed: int
    directories: int


class Published(NamedTuple):
    """How long it took to put a stage in place."""

    stage: str
    changes: int
    seconds: float


class Report(NamedTuple):
    """What was done, and what failed."""

    counts: Counts
    problems: tuple[Problem, ...]
    strangers: tuple[RelPath, ...]
    """Directories that should have gone, but hold what huai did not put there."""
    unknown_users: frozenset[bytes]
    """Names that this machine does not know; the entries kept their owner."""
    unknown_groups: frozenset[bytes]
    published: tuple[Published, ...] = ()
    """The stages in which anything was done, in their order."""

    @property
    def mixed_seconds(self) -> float:
        """How long the tree was between two snapshots: from the first index to the last pointer."""
        return sum(each.seconds for each in self.published if each.stage != STAGES[PAYLOAD])


def execute(
    plan: Plan,
    tree: Tree,
    staged: Callable[[File], Staged],
    on_step: Callable[[str, RelPath], None],
) -> Report:
    """Do everything in `plan`; `on_step` hears of each step that was done.

    `staged` says where the verified content of a file lies.  Running it again
    after a cut, with a plan made from what is there then, goes on where it stopped.

    Raises:
        StorageError: the disk is full, read-only or failing; the rest was not tried.
    """
    run = _Run(tree, staged, on_step)
    try:
        run.prepare(plan)
        if any(stage.fetches for stage in plan.stages):
            run.equip(plan)
            # Content on disk before its name: a power cut must not leave empty files.
            tree.sync()
        for stage in plan.stages:
            if not run.problems:
                run.publish(stage)
        if not run.problems:
            run.remove(plan.removals)
        run.finish(plan)
    except StorageError:
        # Best effort: a full disk still takes modes and times, a failing one does not.
        with suppress(StorageError):
            run.finish(plan)
        raise
    finally:
        failed = tree.tighten()
    run.problems.extend(Problem(path, "its mode could not be put back") for path in failed)
    return run.report()


class _Run:
    """One execution: does steps, counts them, keeps what failed."""

    def __init__(
        self,
        tree: Tree,
        staged: Callable[[File], Staged],
        on_step: Callable[[str, RelPath], None],
    ) -> None:
        self._tree = tree
        self._staged = staged
        self._on_step = on_step
        self._done: Counter[Step] = Counter()
        self.problems: list[Problem] = []
        self._strangers: list[RelPath] = []
        self._published: list[Published] = []

    def _each(
        self,
        step: Step,
        items: Iterable[T],
        path: Callable[[T], RelPath],
        do: Callable[[T], bool | None],
    ) -> None:
        """Do one kind of step; `do` says False for a step that was left out."""
        for item in items:
            try:
                done = do(item)
            except PathError as error:
                self.problems.append(Problem(error.path, error.reason))
                continue
            if done is not False:
                self._done[step] += 1
                self._on_step(step, path(item))

    def prepare(self, plan: Plan) -> None:
        """Clear the way, make and move directories."""
        tree = self._tree
        final = {directory.path: directory for directory in plan.directories}
        self._each(Step.CLEAR, plan.clear, _path, self._remove)
        self._each(
            Step.MAKE,
            plan.make,
            lambda path: path,
            lambda path: tree.make_directory(path, final.get(path)),
        )
        self._each(
            Step.MOVE,
            plan.moves,
            lambda move: move.new,
            lambda move: tree.move(move.old, move.new, plan.forwards.get(move.old)),
        )

    def equip(self, plan: Plan) -> None:
        """Give what was staged its owner, mode and times."""
        for stage in plan.stages:
            for file in stage.fetches:
                try:
                    self._tree.equip(self._staged(file), file)
                except PathError as error:
                    self.problems.append(Problem(error.path, error.reason))

    def publish(self, stage: Stage) -> None:
        """Content, attributes, hardlinks, symlinks."""
        tree = self._tree
        begun, before = time.perf_counter(), self._done.total()
        self._each(Step.PUBLISH, stage.fetches, _path, self._publish)
        # Before the hardlinks: those are made only of what is as it should be.
        self._each(Step.ATTRIBUTES, stage.attributes, _path, tree.set_attributes)
        self._each(Step.LINK, stage.links, _path, tree.link)
        self._each(Step.SYMLINK, stage.symlinks, _path, tree.symlink)
        if changes := self._done.total() - before:
            seconds = time.perf_counter() - begun
            self._published.append(Published(stage.name, changes, seconds))

    def remove(self, removals: list[Remove]) -> None:
        """Delete; a directory with strangers stays and is named."""
        self._each(Step.REMOVE, removals, _path, self._remove_or_leave)

    def finish(self, plan: Plan) -> None:
        """Final attributes of directories, also after problems; then everything to disk."""
        self._each(Step.DIRECTORY, plan.directories, _path, self._set_directory)
        if self._done:
            self._tree.sync()

    def report(self) -> Report:
        """What was done so far."""
        owners = self._tree.owners
        return Report(
            Counts(*(self._done[step] for step in Step)),
            problems=tuple(self.problems),
            strangers=tuple(self._strangers),
            unknown_users=owners.unknown_users if owners else frozenset(),
            unknown_groups=owners.unknown_groups if owners else frozenset(),
            published=tuple(self._published),
        )

    def _remove(self, item: Remove) -> None:
        if item.directory:
            self._tree.remove_directory(item.path)
        else:
            self._tree.remove(item.path)

    def _remove_or_leave(self, item: Remove) -> bool:
        try:
            self._remove(item)
        except StrangersError as error:
            self._strangers.append(error.path)
            return False
        return True

    def _publish(self, file: File) -> None:
        self._tree.put(self._staged(file), file)

    def _set_directory(self, wanted: Directory) -> bool:
        if self.problems and self._tree.stat(wanted.path) is None:
            # Never made, for a reason that is reported already.
            return False
        self._tree.set_directory(wanted)
        return True


def _path(item: Remove | Entry) -> RelPath:
    return item.path
