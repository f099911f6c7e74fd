"""Executing a plan gives the wanted tree, whatever was there before."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from stat import S_ISREG
from typing import TypeVar

from hypothesis import assume, given
from hypothesis import strategies as st

from huai_client.plan.operations import Plan, Stage
from huai_client.plan.withhold import Withholding
from huai_client.publish.executor import execute
from huai_client.tree import PathError, Places, RowResult, Tree
from huai_client.tree.tree import Removal
from huai_schema.codec.publish_rules import STAGES
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath, join, parent, path_order, tree_order
from tests.support.comparing import verify
from tests.support.examples import examples
from tests.support.local_trees import Staged, directory, file, in_order, linked, plan_for, symlink
from tests.support.memory_disk import memory_folder
from tests.support.orders import order_of

T = TypeVar("T")
NAMES = st.sampled_from([b"a", b"b", b"a\n", b"a.b", b"-", b"\xff", b"\1"])
MODES = st.sampled_from([0o644, 0o600, 0o4755, 0])
TIMES = st.sampled_from([0, -1, 1_600_000_000_000_000_001])


@st.composite
def trees(draw: st.DrawFn) -> list[Entry]:
    """Draw a small tree in tree order, with few names, so that two trees overlap."""
    entries: list[Entry] = [directory(b"")]
    folders = [entries[0].path]
    for _ in range(draw(st.integers(0, 12))):
        path = join(draw(st.sampled_from(folders)), draw(NAMES))
        if any(entry.path == path for entry in entries):
            continue
        kind = draw(st.sampled_from(["file", "file", "hardlink", "directory", "symlink"]))
        mtime = draw(TIMES)
        if kind == "directory":
            entries.append(directory(path, mtime, draw(st.sampled_from([0o755, 0o555, 0o2700]))))
            folders.append(path)
        elif kind == "symlink":
            entries.append(symlink(path, draw(NAMES), mtime))
        elif kind == "hardlink":
            key = tree_order(path, directory=False)
            files = [e for e in entries if isinstance(e, File) and e.link is None]
            leaders = [e for e in files if tree_order(e.path, directory=False) < key]
            entries += [linked(path, draw(st.sampled_from(leaders)))] if leaders else []
        else:
            entries.append(file(path, draw(st.integers(0, 40)), mtime, draw(MODES)))
    return in_order(entries)


def hides(before: list[Entry], after: list[Entry]) -> bool:
    """True if only a file's content changes, which a comparison of sizes and times misses.

    Names that shared an inode and are files of their own afterwards can be such.
    """
    files = {entry.path: entry for entry in before if isinstance(entry, File)}
    pairs = [(files[e.path], e) for e in after if isinstance(e, File) and e.path in files]
    return any(
        (have.size, have.mtime) == (want.size, want.mtime) and have.digest != want.digest
        for have, want in pairs
    )


@examples(60)
@given(trees(), trees())
def test_any_tree_becomes_any_other(before: list[Entry], after: list[Entry]) -> None:
    assume(not hides(before, after))
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder, Tree(Path(folder)) as tree:
        for version in (before, after):
            plan = plan_for(tree, version)
            report = execute(plan, tree, Staged(tree.dest), lambda *_: None)
            assert report.problems == ()
            assert list(verify(tree, version, content=True)) == []


class Failing(Tree):
    """A tree in which changes to some paths fail."""

    broken: frozenset[bytes] = frozenset()

    def _apply_unbroken(
        self, items: Sequence[T], do: Callable[[Sequence[T]], RowResult]
    ) -> RowResult:
        """Apply `do` to the items before the first broken one."""
        good = [*takewhile(lambda item: path_of(item) not in self.broken, items)]
        row = do(good) if good else RowResult(0, None)
        if row.failure is None and len(good) < len(items):
            return RowResult(row.done, PathError(path_of(items[len(good)]), "broken"))
        return row

    def make_directories(self, items: Sequence[RelPath | Directory]) -> RowResult:
        return self._apply_unbroken(items, super().make_directories)

    def prepare_files(self, items: Sequence[File], places: Places) -> RowResult:
        prepare = super().prepare_files
        return self._apply_unbroken(items, lambda some: prepare(some, places))

    def make_links(self, items: Sequence[File]) -> RowResult:
        return self._apply_unbroken(items, super().make_links)

    def make_symlinks(self, items: Sequence[Symlink]) -> RowResult:
        return self._apply_unbroken(items, super().make_symlinks)

    def remove_entries(self, items: Sequence[Removal]) -> RowResult:
        return self._apply_unbroken(items, super().remove_entries)


def path_of(item: object) -> RelPath:
    """Return the path of an item of a row."""
    if isinstance(item, bytes):
        return RelPath(item)
    assert isinstance(item, tuple)
    return RelPath(item[0])


ORDER = order_of("indices a.b", "pointers -")


def staged_plan(tree: Tree, entries: list[Entry]) -> Plan:
    """Return a plan with files and symlinks in the stages of `ORDER`."""
    plan = plan_for(tree, entries)
    (everything,) = plan.stages
    attributes: list[list[File | Symlink]] = [[] for _ in STAGES]
    fetches: list[list[File]] = [[] for _ in STAGES]
    leaves = zip(STAGES, fetches, attributes, strict=True)
    stages = [Stage(name, brought, attributes=own) for name, brought, own in leaves]

    def number(entry: File | Symlink) -> int:
        stage = ORDER.stage_of(entry.path, symlink=isinstance(entry, Symlink))
        if isinstance(entry, File) and entry.link:
            stage = max(stage, ORDER.stage_of(entry.link))
        return stage

    def of(entry: File | Symlink) -> Stage:
        return stages[number(entry)]

    for file_ in everything.fetches:
        fetches[number(file_)].append(file_)
    for file_ in everything.links:
        of(file_).links.append(file_)
    for link in everything.symlinks:
        of(link).symlinks.append(link)
    for entry in everything.attributes:
        attributes[number(entry)].append(entry)
    return replace(plan, stages=stages)


@examples(150)
@given(trees(), trees(), st.data())
def test_random_failures_lose_nothing_and_keep_the_order(
    before: list[Entry], after: list[Entry], data: st.DataObject
) -> None:
    assume(not hides(before, after))
    paths = sorted({entry.path for entry in (*before, *after) if entry.path})
    broken = frozenset(data.draw(st.lists(st.sampled_from(paths), unique=True))) if paths else ()
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder, Failing(Path(folder)) as tree:
        execute(plan_for(tree, before), tree, Staged(tree.dest), lambda *_: None)
        done: list[tuple[str, RelPath]] = []
        tree.broken = frozenset(broken)
        report = execute(
            staged_plan(tree, after),
            tree,
            Staged(tree.dest),
            lambda step, path: done.append((step, path)),
            Withholding(ORDER),
        )
        # By a rule of the administrator an index may name anything.
        failed = {problem.path for problem in report.problems}
        put = [ORDER.stage_of(path) for step, path in done if step in {"publish", "symlink"}]
        assert put == sorted(put)
        # A hardlink comes no earlier than its leader.
        links = {e.path: e.link or e.path for e in after if isinstance(e, File)}
        expected = {entry.path for entry in after} & failed
        late = [max(map(ORDER.stage_of, (path, links.get(path, path)))) for path in expected]
        if 0 in late:
            assert not any(put), done
        by_path = {e.path: e for e in before}
        for entry in after:
            old = by_path.get(entry.path)
            if isinstance(entry, File) and isinstance(old, File):
                status = tree.stat(entry.path)
                assert status is not None
                assert S_ISREG(status.st_mode)
        tree.broken = frozenset()
        again = execute(staged_plan(tree, after), tree, Staged(tree.dest), lambda *_: None)
        assert again.problems == ()
        assert list(verify(tree, after, content=True)) == []


@given(trees())
def test_tree_order(entries: list[Entry]) -> None:
    keys = [tree_order(e.path, directory=isinstance(e, Directory)) for e in entries]
    assert keys == sorted(set(keys))
    listed: list[bytes] = []

    def visit(folder: bytes) -> None:
        inside = [entry for entry in entries if entry.path and parent(entry.path) == folder]
        inside.sort(key=lambda entry: path_order(entry.path))
        listed.append(folder)
        listed.extend(entry.path for entry in inside if not isinstance(entry, Directory))
        for entry in inside:
            if isinstance(entry, Directory):
                visit(entry.path)

    visit(b"")
    assert [entry.path for entry in entries] == listed
