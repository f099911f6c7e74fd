"""Executes a plan: the order of the steps.

Knows no policy: the plan decides what to do, `Tree` does each step safely, in rows of one kind, and
`plan.withhold` decides what has to wait for a path that failed.  Rule: once a path waits, ask
`Withholding` before each step, and report each failure to it.  All files get their attributes
before the first is published, so publishing a stage is a row of renames.  Each step first drops
the cached handles: an administrator may have moved a directory since the plan was made.

A new directory is published as a whole where that is possible and no path waits.  Otherwise it is
made, and its files are published one by one.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import NamedTuple, TypeVar

from huai_client.diff.candidate import Move, Remove
from huai_client.diff.files import chosen, paths, within
from huai_client.plan.operations import Plan, Stage, StepKind
from huai_client.plan.withhold import Withholding, by_site
from huai_client.publish.report import FailedPath, Published, Report, StepCounts
from huai_client.publish.rows import in_rows
from huai_client.publish.whole import NewSubtree, whole_directories
from huai_client.tree import (
    NotEmptyError,
    PathError,
    Places,
    RowResult,
    StorageError,
    Tree,
    is_other_file_system,
)
from huai_native import _native
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath, join, parent, show

T = TypeVar("T")


class FileFacts(NamedTuple):
    """Facts about the files to publish."""

    volatile: Collection[RelPath] = ()
    """Files that come last in their stage."""
    unfinished: Callable[[Sequence[File]], Sequence[File]] = lambda files: files
    """Selects the files whose owner, mode and times are still to be set."""


_NO_FACTS = FileFacts()
_FEW = 64
"""For so many files and directories fsync(2) takes less than syncfs(2), and far less if other
programs have written much to the file system."""


def execute(
    plan: Plan,
    tree: Tree,
    staged: Callable[[Sequence[File]], Places],
    on_step: Callable[[str, RelPath], None] | None,
    withholding: Withholding | None = None,
    facts: FileFacts = _NO_FACTS,
) -> Report:
    """Execute `plan`, and return the report; calls `on_step` for each step, after its row was done.

    `staged` locates the content of files.  `withholding` has the earlier failures.  After an
    interrupted run a new plan, made from the tree as the run left it, finishes the work.  Raises
    `StorageError` if the disk is full, read-only or failing; the rest was not tried.
    """
    few = _count_writes(plan) <= _FEW
    run = _Run(tree, staged, on_step, withholding or Withholding(), few=few)
    try:
        tree.refresh()
        run.set_metadata(plan, facts.unfinished)
        run.find_whole_directories(plan, facts.volatile)
        run.prepare(plan)
        if not few and any(stage.fetches for stage in plan.stages):
            # Content is written to disk before its name: a power cut must not leave empty files.
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
    """One execution: does steps, counts them, records failures."""

    def __init__(
        self,
        tree: Tree,
        staged: Callable[[Sequence[File]], Places],
        on_step: Callable[[str, RelPath], None] | None,
        withholding: Withholding,
        *,
        few: bool,
    ) -> None:
        """With `few`, files and directories are written to disk one by one."""
        self._tree = tree
        self._staged = staged
        self._on_step = on_step
        self._withholding = withholding
        self._done: Counter[StepKind] = Counter()
        self.problems: list[FailedPath] = []
        self._extraneous: list[RelPath] = []
        self._published: list[Published] = []
        self._unmoved = False
        self._directories: Sequence[Directory] = ()
        """The final attributes of directories."""
        self._subtrees: list[list[NewSubtree]] = []
        """New directories that are published at once, by stage."""
        self._few = few
        self._settled: set[RelPath] = set()
        """Directories that were published with their final attributes."""

    def _do_each(
        self,
        step: StepKind,
        items: Sequence[T],
        path: Callable[[T], RelPath],
        do: Callable[[Sequence[T]], RowResult],
        may: Callable[[T], bool],
    ) -> None:
        """Do one kind of step for the items that `may` allows; count them, and record failures.

        `do` does a row of items; `path` returns that of an item.
        """
        for row in in_rows(items, do, may, self._withholding):
            self._count(step, row.done, path)
            if row.failed:
                item, error = row.failed
                self._fail(error, step, path(item), item)

    def _count(self, step: StepKind, done: Sequence[T], path: Callable[[T], RelPath]) -> None:
        """Count finished steps, and report each."""
        if not done:
            return
        self._done[step] += len(done)
        if self._on_step:
            for item in done:
                self._on_step(step, path(item))

    def _fail(self, error: PathError, step: StepKind, path: RelPath, item: object = None) -> None:
        """Record a failure; what depends on `path` has to wait.

        After a failed deletion only the directories above it stay.
        """
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
        """Clear the way, make and move directories; then do the same below moved directories."""
        tree, waiting, forwards = self._tree, self._withholding, plan.forwards
        arrives = _native.Renames(plan.moves).arrives
        self._make_room(plan, lambda path: not arrives(path))
        self._do_each(
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
        """Clear the way, and make directories that are not published whole, where it `concerns`."""
        for site, items in by_site(item for item in plan.clear if concerns(item.path)).items():
            if self._withholding.makes_way(site, [item.path for item in items]):
                self._clear(site, items)
        later = {path for stage in self._subtrees for tree in stage for path in tree.make}
        self._make([path for path in plan.make if path not in later and concerns(path)])

    def _make(self, make: Sequence[RelPath]) -> None:
        """Make directories, with their final attributes as far as they are known."""
        if not make:
            return
        tree = self._tree
        final = {each.path: each for each in within(self._directories, {*make})}
        self._do_each(
            StepKind.MAKE,
            make,
            lambda path: path,
            lambda paths: tree.make_directories([final.get(path, path) for path in paths]),
            self._withholding.makes,
        )

    def _clear(self, site: RelPath, items: list[Remove]) -> None:
        """Delete `items`, in the way of an entry at `site`; if one fails, `site` waits.

        Deletes nothing, and reports `site`, if a directory holds a path that no snapshot names.
        """
        try:
            extraneous = self._find_extraneous(items)
        except PathError as error:
            self._fail(error, StepKind.CLEAR, site)
            return
        if extraneous is not None:
            reason = (
                f"cannot be replaced, because it holds {show(extraneous)}, which no snapshot "
                "names: move that away, or sync with --adopt --delete-extraneous"
            )
            self.problems.append(FailedPath(site, reason))
            self._withholding.fail(site)
            return
        waiting, remove = self._withholding, self._tree.remove_entries
        for row in in_rows(items, remove, self._may_continue, waiting):
            self._count(StepKind.CLEAR, row.done, _path)
            if row.failed:
                # A path that cannot be removed blocks the new entry.
                waiting.fail(site)
                self._fail(row.failed.error, StepKind.CLEAR, row.failed.item.path)

    def _find_extraneous(self, items: list[Remove]) -> RelPath | None:
        """Return a path below a directory of `items` that is not in `items`, if there is one."""
        removed = {item.path for item in items}
        for item in items:
            if not item.directory or not self._tree.is_directory(item.path):
                continue
            for name in sorted(chain(*self._tree.listing(item.path))):
                if join(item.path, name) not in removed:
                    return join(item.path, name)
        return None

    def _may_continue(self, item: Remove | File) -> bool:
        return not self._withholding.waits(item.path)

    def set_metadata(
        self, plan: Plan, unfinished: Callable[[Sequence[File]], Sequence[File]]
    ) -> None:
        """Set owner, mode and times of `unfinished` staged files; find what waits for failures."""

        def prepare(files: Sequence[File]) -> RowResult:
            return self._with_content(files, self._tree.prepare_files)

        waiting = self._withholding
        for stage in plan.stages:
            for row in in_rows(unfinished(stage.fetches), prepare, self._may_continue, waiting):
                if row.failed:
                    self._fail(row.failed.error, StepKind.PUBLISH, row.failed.item.path)
        if not waiting.nothing:
            waiting.foresee(plan)

    def _with_content(
        self, files: Sequence[File], do: Callable[[Sequence[File], Places], RowResult]
    ) -> RowResult:
        """Do a row with the staged content of `files`.

        A file that is to be changed in place may refuse its content, which ends the row.
        """
        try:
            return do(files, self._staged(files))
        except PathError as error:
            before = files[: [*paths(files)].index(error.path)]
            done = do(before, self._staged(before)) if before else RowResult(0, None)
            return done if done.failure else RowResult(done.done, error)

    def find_whole_directories(self, plan: Plan, volatile: Collection[RelPath]) -> None:
        """Note the final attributes; if no path waits, find directories to publish at once."""
        self._directories = plan.directories
        if plan.make and self._withholding.nothing:
            self._subtrees = whole_directories(plan, self._staged, volatile)

    def publish(self, stage: Stage, number: int) -> None:
        """Publish what may be of one stage: content, attributes, hardlinks and symlinks."""
        tree, waiting = self._tree, self._withholding

        def may(entry: Entry) -> bool:
            return waiting.publishes(entry, number)

        def publish_files(files: Sequence[File], places: Places) -> RowResult:
            if self._few:
                tree.sync_content(files, places)
            return tree.publish_files(files, places)

        def publish_content(batch: Sequence[File]) -> RowResult:
            return self._with_content(batch, publish_files)

        tree.refresh()
        begun, before = time.perf_counter(), self._changes()
        fetches, links, symlinks = stage.fetches, stage.links, stage.symlinks
        if self._subtrees and (published := self._publish_whole(self._subtrees[number], stage)):
            made_paths = {path for subtree in published for path in subtree.make}
            published_files = chain.from_iterable(subtree.files for subtree in published)
            fetches = chosen(fetches, [*_remaining(published_files, len(fetches))])
            links = [link for link in links if parent(link.path) not in made_paths]
            symlinks = [symlink for symlink in symlinks if parent(symlink.path) not in made_paths]
        self._do_each(StepKind.PUBLISH, fetches, _path, publish_content, may)
        # Before the hardlinks: they are made only of files that are complete.
        settles = waiting.settles
        self._do_each(StepKind.ATTRIBUTES, stage.attributes, _path, tree.settle_leaves, settles)
        self._do_each(StepKind.LINK, links, _path, tree.make_links, may)
        self._do_each(StepKind.SYMLINK, symlinks, _path, tree.make_symlinks, may)
        if changes := self._changes() - before:
            seconds = time.perf_counter() - begun
            self._published.append(Published(stage.name, changes, seconds))

    def _changes(self) -> int:
        """Return the number of steps so far, without directories that were made."""
        return self._done.total() - self._done[StepKind.MAKE]

    def _publish_whole(self, subtrees: list[NewSubtree], stage: Stage) -> list[NewSubtree]:
        """Publish new directories of `stage`, or only make them; return the published ones."""

        def publish_row(row: Sequence[NewSubtree]) -> RowResult:
            for places in chain.from_iterable(each.files for each in row if self._few):
                files = stage.fetches[places.start : places.stop]
                self._tree.sync_content(files, self._staged(files))
            return self._tree.publish_directories([subtree.directory for subtree in row])

        published: list[NewSubtree] = []
        # A failure holds nothing back: the directory is made instead.
        for row in in_rows(subtrees, publish_row, lambda _: False, self._withholding):
            for subtree in row.done:
                published.append(subtree)
                self._count(StepKind.MAKE, subtree.make, lambda path: path)
                for places in subtree.files:
                    files = stage.fetches[places.start : places.stop]
                    self._count(StepKind.PUBLISH, files, _path)
                self._count(StepKind.LINK, subtree.directory.links, _path)
                self._count(StepKind.SYMLINK, subtree.directory.symlinks, _path)
                pairs = zip(*subtree.directory.directories, strict=True)
                self._settled.update(entry.path for entry, (_, settled) in pairs if settled)
        done = {subtree.directory.path for subtree in published}
        left = [subtree for subtree in subtrees if subtree.directory.path not in done]
        self._make([path for subtree in left for path in subtree.make])
        return published

    def remove(self, removals: Sequence[Remove]) -> None:
        """Delete the `removals`; a directory with extraneous files stays, and is reported."""
        waiting, remove = self._withholding, self._tree.remove_entries
        self._tree.refresh()
        for row in in_rows(removals, remove, waiting.removes, waiting):
            self._count(StepKind.REMOVE, row.done, _path)
            if not row.failed:
                continue
            item, error = row.failed
            if isinstance(error, NotEmptyError):
                self._extraneous.append(error.path)
            else:
                self._fail(error, StepKind.REMOVE, item.path)

    def finish(self, plan: Plan) -> None:
        """Set the final attributes of directories, also after problems, and sync to disk."""
        tree, settled, left = self._tree, self._settled, plan.directories
        tree.refresh()

        def exists(directory: Directory) -> bool:  # the reason why it does not is reported already
            return tree.is_directory(directory.path)

        if settled:
            left = [directory for directory in left if directory.path not in settled]
        self._do_each(StepKind.DIRECTORY, left, _path, tree.settle_directories, exists)
        self._count(StepKind.DIRECTORY, [*settled], lambda path: path)
        if self._done:
            tree.sync(_changed(plan) if self._few else None)

    def report(self) -> Report:
        """Return the report so far."""
        owners = self._tree.owners
        return Report(
            StepCounts(*(self._done[step] for step in StepKind)),
            problems=tuple(self.problems),
            extraneous=tuple(self._extraneous),
            unknown_owners=frozenset(owners.unknown if owners else ()),
            published=tuple(self._published),
            withheld=len(self._withholding.withheld),
            unmoved=self._unmoved,
        )


def _remaining(places: Iterable[range], count: int) -> Iterator[int]:
    """Yield the places below `count` that are in none of the ranges."""
    begin = 0
    for some in sorted(places, key=lambda some: some.start):
        yield from range(begin, some.start)
        begin = some.stop
    yield from range(begin, count)


def _path(item: Remove | Entry) -> RelPath:
    return item.path


def _count_writes(plan: Plan) -> int:
    """Return the number of files and directories that have to be written to disk."""
    leaves = sum(len(stage.fetches) + len(stage.attributes) for stage in plan.stages)
    return leaves + len(plan.directories)


def _changed(plan: Plan) -> list[RelPath]:
    """Return the directories that a plan changes, and the leaves that only get attributes."""
    leaves = chain.from_iterable(stage.attributes for stage in plan.stages)
    return [entry.path for entry in chain(plan.directories, leaves)]
