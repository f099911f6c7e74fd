"""Renamed and changed directories: the next run can finish one that was cut anywhere."""

import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest
from blake3 import blake3
from hypothesis import example, given
from hypothesis import strategies as st

from huai_client.diff.candidate import TreeDiff
from huai_client.diff.candidates import diff_changes
from huai_client.diff.selection import Selection
from huai_client.plan.operations import Plan
from huai_client.plan.planner import (
    changed_directories,
    make_plan,
    split_shared_inodes,
    with_directories,
)
from huai_client.publish.executor import execute
from huai_client.tree import Tree as LocalTree
from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import ROOT, RelPath, join, parent
from tests.support.comparing import selection_of, verify
from tests.support.examples import examples
from tests.support.local_trees import Staged
from tests.support.memory_disk import memory_folder
from tests.support.schema.strategies import RANDOMS, Seeded
from tests.support.schema.trees import directory, insert, settle_links, tree_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from huai_schema.entries import Entry
    from tests.support.schema.trees import Tree

PLACES = [b"a", b"b", b"x/a", b"x/y/c", b"z"]
SIZES = st.sampled_from([140, 300])


class History:
    """The versions of a tree, with the contents of their files."""

    def __init__(self, random: Random, size: int) -> None:
        self.contents: dict[bytes, bytes] = {}
        self._random = random
        self._clock = 0
        self.tree = tree_of()
        part = tree_of(*(self.file(b"f%03d" % number) for number in range(size)))
        part[RelPath(b"sub")] = directory(b"sub")
        part[RelPath(b"sub/in")] = self.file(b"sub/in")
        insert(self.tree, b"a", part)
        for name in (b"k", b"x/l"):
            insert(self.tree, name, {ROOT: self.file(b"")})

    def file(self, path: bytes) -> File:
        """Create a file, or new content for one."""
        self._clock += 1
        content = b"%d\n" % self._clock * self._random.choice([1, 1, 200])
        digest = blake3(content).digest()
        self.contents[digest] = content
        return File(RelPath(path), len(content), self._clock, digest=digest)

    def next(self) -> Selection:
        """Draw the next version: a directory may move, with changes mostly inside it."""
        random, tree = self._random, self.tree
        if random.random() < 0.8:
            self._rename()
        for _ in range(random.choice([0, 1, 4])):
            change = random.choice([self._edit, self._add, self._delete, self._retype, self._link])
            change(random.choice([path for path in sorted(tree) if path]))
        settle_links(tree)
        for path, entry in tree.items():
            if isinstance(entry, Directory) and random.random() < 0.1:
                tree[path] = entry._replace(mtime=entry.mtime + 1)
        return selection_of([*tree.values()])

    def _rename(self) -> None:
        random, tree = self._random, self.tree
        large = [path for path in sorted(tree) if isinstance(tree[path], Directory) and path]
        large = [path for path in large if sum(each.startswith(path) for each in tree) > 100]
        target = random.choice(PLACES)
        if not large or RelPath(target) in tree:
            return
        source = random.choice(large)
        if any(isinstance(tree.get(above), File | Symlink) for above in _above(target)):
            return
        if target.startswith(source + b"/"):
            return
        part: Tree = {}
        for path in [each for each in tree if (each + b"/").startswith(source + b"/")]:
            entry, inner = tree[path], RelPath(path[len(source) + 1 :])
            if isinstance(entry, File) and entry.link is not None:
                inside = entry.link.startswith(source + b"/")
                link = RelPath(entry.link[len(source) + 1 :]) if inside else None
                part[inner] = entry._replace(path=inner, link=link)
                del tree[path]
                continue
            part[inner] = entry._replace(path=inner)
            if random.random() < 0.995:
                del tree[path]
        for path in [each for each in tree if each.startswith(source + b"/")]:
            tree.setdefault(source, Directory(source, 5))
            if parent(path) not in tree:
                del tree[path]
        insert(tree, target, part)

    def _edit(self, path: RelPath) -> None:
        entry = self.tree[path]
        if isinstance(entry, File):
            self.tree[path] = self.file(path)
        else:
            self.tree[path] = entry._replace(mtime=entry.mtime + 1)

    def _add(self, path: RelPath) -> None:
        folder = path if isinstance(self.tree[path], Directory) else parent(path)
        self._clock += 1
        new = join(folder, b"n%d" % self._clock)
        if self._random.random() < 0.3:
            self.tree[new] = Directory(new, self._clock)
            new = join(new, b"deep")
        self.tree[new] = self.file(new)

    def _delete(self, path: RelPath) -> None:
        if path != b"k" and path not in {*map(RelPath, PLACES)}:
            for below in [each for each in self.tree if (each + b"/").startswith(path + b"/")]:
                del self.tree[below]

    def _retype(self, path: RelPath) -> None:
        content = self.tree[path]
        if isinstance(content, Directory) and not path.endswith(b"/sub"):
            return
        self._delete(path)
        kinds: list[Callable[[], Entry]] = [
            lambda: self.file(path),
            lambda: Symlink(path, b"k", self._clock),
            lambda: Directory(path, self._clock),
        ]
        self.tree[path] = self._random.choice(kinds)()

    def _link(self, path: RelPath) -> None:
        leaders = [each for each in self.tree.values() if isinstance(each, File) and not each.link]
        leader = self._random.choice(leaders)
        entry = self.tree[path]
        if isinstance(entry, File) and not self._leads(path):
            self.tree[path] = leader._replace(path=path, link=leader.path)

    def _leads(self, path: RelPath) -> bool:
        return any(isinstance(each, File) and each.link == path for each in self.tree.values())


def _above(path: bytes) -> list[RelPath]:
    parts = path.split(b"/")
    return [RelPath(b"/".join(parts[: count + 1])) for count in range(len(parts))]


class HeldContent(Staged):
    """A staging area with the content of each digest."""

    def __init__(self, dest: Path, contents: dict[bytes, bytes]) -> None:
        super().__init__(dest)
        self._contents = contents

    def path(self, file: File) -> Path:
        self._ready.mkdir(parents=True, exist_ok=True)
        path = self._ready / f"{file.path.hex()[-200:]}"
        assert file.digest is not None
        content = self._contents[file.digest]
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
        return path


class CutError(Exception):
    """An error that ends the run at a step."""


class Planned(NamedTuple):
    """A plan, with its comparison."""

    plan: Plan
    diff: TreeDiff


def planned(tree: LocalTree, past: list[Selection], target: Selection) -> Planned:
    """Plan like `PlanBuilder`, without limits and protection."""
    diff = diff_changes(tree, past, target)
    if len(past) > 1:
        diff = split_shared_inodes(diff, may_share=False)
    plan = make_plan(diff.candidates, diff.moves, lambda leaves: [int(link) for _, link in leaves])
    changed = map(target.directory, changed_directories(plan))
    return Planned(with_directories(plan, [each for each in changed if each is not None]), diff)


def carry_out(plan: Plan, tree: LocalTree, content: HeldContent, steps: int) -> None:
    """Carry out a plan; raise `CutError` after `steps`."""
    left = steps

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            raise CutError

    report = execute(plan, tree, content, count)
    assert report.problems == ()
    assert report.extraneous == ()


ENDLESS = 1 << 40
NOTHING = selection_of([Directory(ROOT, 0)])


@pytest.mark.timeout(600)
@examples(30)
@given(RANDOMS, SIZES, st.lists(st.sampled_from([1, 2, 3, 5, 9, ENDLESS]), min_size=1, max_size=4))
@example(Seeded(3), 140, [2, 2, 2])
def test_any_history_of_renames(random: Random, size: int, cuts: list[int]) -> None:
    history = History(random, size)
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        past: list[Selection] = []
        first = selection_of([*history.tree.values()])
        versions = [(first, ENDLESS), *((history.next(), cut) for cut in cuts)]
        content = HeldContent(Path(folder), history.contents)
        for target, cut in [*versions, (history.next(), ENDLESS)]:
            with LocalTree(Path(folder)) as tree:
                plan = planned(tree, past or [NOTHING], target).plan
                try:
                    carry_out(plan, tree, content, cut)
                except CutError:
                    past.append(target)
                    continue
                past = [target]
                assert list(verify(tree, target, content=True)) == []
