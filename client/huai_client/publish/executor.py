"""Carries out a plan: the order of the steps.

Knows no policy: the plan decides what to do, `Tree` does each step safely, in rows of one kind, and
`plan.withhold` decides what has to wait for a path that failed.  Rule: once something waits, ask
`Withholding` before each step, and report each failure to it.  All files get their attributes
before the first is published, so publishing a stage is a row of renames.

A new directory is published as a whole where that is possible and nothing waits.  Otherwise it is
made, and its files are published one by one.
"""

import stat
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from itertools import chain
from typing import NamedTuple, TypeVar

from huai_client.diff.candidate import Move, Remove
from huai_client.diff.files import chosen, paths
from huai_client.diff.renames import Renames
from huai_client.plan.operations import Plan, Stage, StepKind
from huai_client.plan.withhold import Withholding, sites
from huai_client.publish.report import FailedPath, Published, Report, StepCounts
from huai_client.publish.rows import in_rows
from huai_client.publish.whole import Whole, whole_directories
from huai_client.tree import (
    NotEmptyError,
    PathError,
    Places,
    Row,
    StorageError,
    Tree,
    is_other_file_system,
)
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath, join, parent, show

T = TypeVar("T")


class Known(NamedTuple):
    """What is known of files that are to be published."""

    volatile: Collection[RelPath] = ()
    """These stay the last of their stage."""
    unfinished: Callable[[Sequence[File]], Sequence[File]] = lambda files: files
    """Picks those whose owner, mode and times are still to be set."""


_NOTHING = Known()


def execute(
    plan: Plan,
    tree: Tree,
    staged: Callable[[Sequence[File]], Places],
    on_step: Callable[[str, RelPath], None] | None,
    withholding: Withholding | None = None,
    known: Known = _NOTHING,
) -> Report:
    """Carry out `plan`; calls `on_step` for each step, when the row that it is in was done.

    `staged` says where the content of files is.  `withholding` knows what has failed already.
    After an interrupted run a new plan, made from the tree as it is then, finishes the work.

    Raises:
        StorageError: the disk is full, read-only or failing; the rest was not tried.
    """
    run = _Run(tree, staged, on_step, withholding or Withholding())
    try:
        run.set_metadata(plan, known.unfinished)
        run.find_whole(plan, known.volatile)
        run.prepare(plan)
        if any(stage.fetches for stage in plan.stages):
            # Content goes to the disk before its name: a power cut must not leave empty files.
            tree.sync()
        for number, stage in enumerate(plan.stages):
            run.publish(stage, number)
        run.remove(plan.removals)
        run.finish(plan)
    except StorageError:
        # Best effort: modes and times can be set on a full disk, but not on a failing one.
        with suppress(StorageError):
            run.finish(plan)
        raise
    finally:
        failed = tree.restore_modes()
    run.problems.extend(FailedPath(path, "its mode could not be put back") for path in failed)
    return run.report()


class _Run:
    """One execution: does steps, counts them, keeps what failed."""

    def __init__(
        self,
        tree: Tree,
        staged: Callable[[Sequence[File]], Places],
        on_step: Callable[[str, RelPath], None] | None,
        withholding: Withholding,
    ) -> None:
        self._tree = tree
        self._staged = staged
        self._on_step = on_step
        self._withholding = withholding
        self._done: Counter[StepKind] = Counter()
        self.problems: list[FailedPath] = []
        self._extraneous: list[RelPath] = []
        self._published: list[Published] = []
        self._unmoved = False
        self._final: dict[RelPath, Directory] = {}
        """The attributes of directories."""
        self._whole: list[list[Whole]] = []
        """New directories that are published at once, by stage."""
        self._settled: set[RelPath] = set()
        """Directories that were published with their final attributes."""

    def _each(
        self,
        step: StepKind,
        items: Sequence[T],
        path: Callable[[T], RelPath],
        do: Callable[[Sequence[T]], Row],
        may: Callable[[T], bool],
    ) -> None:
        """Do one kind of step for all items that `may` allows."""
        for row in in_rows(items, do, may, self._withholding):
            self._count(step, row.done, path)
            if row.failed:
                item, error = row.failed
                self._failed(error, step, path(item), item)

    def _count(self, step: StepKind, done: Sequence[T], path: Callable[[T], RelPath]) -> None:
        if not done:
            return
        self._done[step] += len(done)
        if self._on_step:
            for item in done:
                self._on_step(step, path(item))

    def _failed(self, error: PathError, step: StepKind, path: RelPath, item: object = None) -> None:
        self.problems.append(FailedPath(error.path, error.reason))
        waiting = self._withholding
        if step is StepKind.REMOVE:
            waiting.keep(path)
            return
        waiting.fail(path, symlink=isinstance(item, Symlink))
        if isinstance(item, Move):
            waiting.fail(item.old)
            self._unmoved |= is_other_file_system(error)

    def prepare(self, plan: Plan) -> None:
        """Clear the way, make and move directories; then the same in those that were moved."""
        tree, waiting, forwards = self._tree, self._withholding, plan.forwards
        arrives = Renames(plan.moves).arrives
        self._make_room(plan, lambda path: not arrives(path))
        self._each(
            StepKind.MOVE,
            plan.moves,
            lambda move: move.new,
            lambda moves: tree.move_directories(
                moves, [forwards[move.old] for move in moves if move.old in forwards]
            ),
            waiting.moves,
        )
        if plan.moves:
            self._make_room(plan, arrives)

    def _make_room(self, plan: Plan, concerns: Callable[[RelPath], bool]) -> None:
        """Clear the way and make directories at the paths that this `concerns`."""
        for site, items in sites(item for item in plan.clear if concerns(item.path)).items():
            if self._withholding.makes_way(site, [item.path for item in items]):
                self._clear(site, items)
        later = {path for stage in self._whole for whole in stage for path in whole.make}
        self._make([path for path in plan.make if path not in later and concerns(path)])

    def _make(self, make: Sequence[RelPath]) -> None:
        tree, final = self._tree, self._final
        self._each(
            StepKind.MAKE,
            make,
            lambda path: path,
            lambda made: tree.make_directories([final.get(path, path) for path in made]),
            self._withholding.makes,
        )

    def _clear(self, site: RelPath, items: list[Remove]) -> None:
        """Remove what is at `site`; nothing of it, if there is anything extraneous below."""
        try:
            found = self._extraneous_below(items)
        except PathError as error:
            self._failed(error, StepKind.CLEAR, site)
            return
        if found is not None:
            reason = (
                f"something else is to stand here, and it holds {show(found)}, which no "
                "snapshot names: move that away, or sync with --adopt --delete-extraneous"
            )
            self.problems.append(FailedPath(site, reason))
            self._withholding.fail(site)
            return
        waiting, remove = self._withholding, self._tree.remove_entries
        for row in in_rows(items, remove, self._goes_on, waiting):
            self._count(StepKind.CLEAR, row.done, _path)
            if row.failed:
                # What cannot go keeps the site from being anything else.
                waiting.fail(site)
                self._failed(row.failed.error, StepKind.CLEAR, row.failed.item.path)

    def _extraneous_below(self, items: list[Remove]) -> RelPath | None:
        """A path in a directory of `items` that is not in `items` itself; None: there is none."""
        going = {item.path for item in items}
        for item in items:
            found = self._tree.stat(item.path) if item.directory else None
            if found is None or not stat.S_ISDIR(found.st_mode):
                continue
            for name in sorted(chain(*self._tree.listing(item.path))):
                if join(item.path, name) not in going:
                    return join(item.path, name)
        return None

    def _goes_on(self, item: Remove | File) -> bool:
        return not self._withholding.waits(item.path)

    def set_metadata(
        self, plan: Plan, unfinished: Callable[[Sequence[File]], Sequence[File]]
    ) -> None:
        """Give what was staged its owner, mode and times, where it is `unfinished`."""

        def prepare(files: Sequence[File]) -> Row:
            return self._with_content(files, self._tree.prepare_files)

        waiting = self._withholding
        for stage in plan.stages:
            for row in in_rows(unfinished(stage.fetches), prepare, self._goes_on, waiting):
                if row.failed:
                    self._failed(row.failed.error, StepKind.PUBLISH, row.failed.item.path)
        if not waiting.nothing:
            waiting.foresee(plan)

    def _with_content(
        self, files: Sequence[File], do: Callable[[Sequence[File], Places], Row]
    ) -> Row:
        """Do a row with the staged content of `files`.

        One that is to be changed where it stands may refuse it, and ends the row.
        """
        try:
            return do(files, self._staged(files))
        except PathError as error:
            before = files[: [*paths(files)].index(error.path)]
            done = do(before, self._staged(before)) if before else Row(0, None)
            return done if done.failure else Row(done.done, error)

    def find_whole(self, plan: Plan, volatile: Collection[RelPath]) -> None:
        """Find the directories that are published at once."""
        if plan.make:
            self._final = {directory.path: directory for directory in plan.directories}
        if plan.make and self._withholding.nothing:
            self._whole = whole_directories(plan, self._staged, volatile)

    def publish(self, stage: Stage, number: int) -> None:
        """Content, attributes, hardlinks, symlinks."""
        tree, waiting = self._tree, self._withholding

        def may(entry: Entry) -> bool:
            return waiting.publishes(entry, number)

        def put(files: Sequence[File]) -> Row:
            return self._with_content(files, tree.publish_files)

        begun, before = time.perf_counter(), self._changes()
        fetches, links, symlinks = stage.fetches, stage.links, stage.symlinks
        if self._whole and (published := self._publish_whole(self._whole[number], stage)):
            made = {path for whole in published for path in whole.make}
            done = {place for whole in published for place in whole.files}
            fetches = chosen(fetches, [n for n in range(len(fetches)) if n not in done])
            links = [link for link in links if parent(link.path) not in made]
            symlinks = [symlink for symlink in symlinks if parent(symlink.path) not in made]
        self._each(StepKind.PUBLISH, fetches, _path, put, may)
        # Before the hardlinks: those are made only of what is as it should be.
        settles = waiting.settles
        self._each(StepKind.ATTRIBUTES, stage.attributes, _path, tree.settle_leaves, settles)
        self._each(StepKind.LINK, links, _path, tree.make_links, may)
        self._each(StepKind.SYMLINK, symlinks, _path, tree.make_symlinks, may)
        if changes := self._changes() - before:
            seconds = time.perf_counter() - begun
            self._published.append(Published(stage.name, changes, seconds))

    def _changes(self) -> int:
        """How many steps were done, but for directories that were made."""
        return self._done.total() - self._done[StepKind.MAKE]

    def _publish_whole(self, wholes: list[Whole], stage: Stage) -> list[Whole]:
        """Publish new directories of `stage`, or only make them; those that were published."""

        def put(row: Sequence[Whole]) -> Row:
            return self._tree.publish_directories([whole.directory for whole in row])

        published: list[Whole] = []
        # One that fails waits for nothing: it has another way.
        for row in in_rows(wholes, put, lambda _: False, self._withholding):
            for whole in row.done:
                published.append(whole)
                self._count(StepKind.MAKE, whole.make, lambda path: path)
                self._count(StepKind.PUBLISH, chosen(stage.fetches, whole.files), _path)
                self._count(StepKind.LINK, whole.directory.links, _path)
                self._count(StepKind.SYMLINK, whole.directory.symlinks, _path)
                pairs = zip(*whole.directory.directories, strict=True)
                self._settled.update(entry.path for entry, (_, settled) in pairs if settled)
        done = {whole.directory.path for whole in published}
        left = [whole for whole in wholes if whole.directory.path not in done]
        self._make([path for whole in left for path in whole.make])
        return published

    def remove(self, removals: Sequence[Remove]) -> None:
        """Delete; a directory with extraneous files stays and is named."""
        waiting, remove = self._withholding, self._tree.remove_entries
        for row in in_rows(removals, remove, waiting.removes, waiting):
            self._count(StepKind.REMOVE, row.done, _path)
            if not row.failed:
                continue
            item, error = row.failed
            if isinstance(error, NotEmptyError):
                self._extraneous.append(error.path)
            else:
                self._failed(error, StepKind.REMOVE, item.path)

    def finish(self, plan: Plan) -> None:
        """Final attributes of directories, also after problems; then everything to disk."""
        settle, settled = self._tree.settle_directories, self._settled
        left = plan.directories
        if settled:
            left = [directory for directory in left if directory.path not in settled]
        self._each(StepKind.DIRECTORY, left, _path, settle, self._is_made)
        self._count(StepKind.DIRECTORY, [*settled], lambda path: path)
        if self._done:
            self._tree.sync()

    def report(self) -> Report:
        """What was done so far."""
        owners = self._tree.owners
        return Report(
            StepCounts(*(self._done[step] for step in StepKind)),
            problems=tuple(self.problems),
            extraneous=tuple(self._extraneous),
            unknown_users=owners.unknown_users if owners else frozenset(),
            unknown_groups=owners.unknown_groups if owners else frozenset(),
            published=tuple(self._published),
            held=len(self._withholding.held),
            unmoved=self._unmoved,
        )

    def _is_made(self, wanted: Directory) -> bool:
        """Whether it is there; if not, it was never made, for a reason that is reported already."""
        found = self._tree.stat(wanted.path)
        return found is not None and stat.S_ISDIR(found.st_mode)


def _path(item: Remove | Entry) -> RelPath:
    return item.path
