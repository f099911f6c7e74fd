"""An attr tree that was updated in place equals a newly built one."""

import os
import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from hypothesis import example, given

from huai_schema.diff.changes import Moved
from huai_schema.diff.diff import diff
from huai_schema.entries import Entry, File, Symlink
from huai_schema.layout.snapshot import decode_listing
from huai_schema.paths import ROOT, RelPath
from huai_server.fallback.owners import OwnerIds
from huai_server.fallback.sparse.kind import SparseKind
from tests.support.examples import examples
from tests.support.scanned import listings
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.strategies import RANDOMS, Seeded
from tests.support.schema.trees import (
    Tree,
    changed_tree,
    directory,
    file,
    files,
    random_tree,
    settle_links,
    snapshot,
    tree_of,
)

if TYPE_CHECKING:
    from huai_schema.layout.snapshot import Snapshot

OWNERS = (b"root", b"#5", b"#70000")


def listable(tree: Tree) -> Tree:
    """Return the tree as an attr tree can show it: portable numbers, no digests."""
    entries: Tree = {}
    for path, entry in tree.items():
        number = sum(path) % len(OWNERS)
        owned = entry._replace(owner=OWNERS[number], group=OWNERS[-1 - number])
        if isinstance(owned, Symlink):
            owned = owned._replace(mode=0o777)
        elif isinstance(owned, File):
            owned = owned._replace(digest=None)
        entries[path] = owned
    settle_links(entries)
    return entries


def listed(generation: Path) -> dict[RelPath, Entry]:
    """Return the entries of an attr tree; an id without a name stays a number."""
    entries: list[Entry] = []
    for listing in listings(generation):
        entries += decode_listing(listing)
    ids = OwnerIds()
    return {
        entry.path: owned(entry, b"#%d" % ids.uid(entry.owner), b"#%d" % ids.gid(entry.group))
        for entry in entries
    }


def owned(entry: Entry, owner: bytes, group: bytes) -> Entry:
    """Return the entry with these owners; without any for users who cannot change owners."""
    if os.geteuid() != 0:
        owner = group = b""
    return entry._replace(owner=owner, group=group)


def expected_entries(tree: Tree) -> dict[RelPath, Entry]:
    """Return the expected entries of a tree."""
    names = {b"root": b"#0"}
    return {
        path: owned(entry, names.get(entry.owner, entry.owner), names.get(entry.group, entry.group))
        for path, entry in tree.items()
    }


def prove(*steps: Tree) -> None:
    """Build the first, update to each of the others, and compare after each."""
    folder = Path(tempfile.mkdtemp(prefix="h"))
    try:
        kind, objects = SparseKind(folder), MemoryObjects()
        (folder / "generations").mkdir()
        generation = folder / "generations/1"
        before: Snapshot | None = None
        for tree in steps:
            now = snapshot(tree, objects)
            if before is None:
                unowned = kind.make(generation, now, OwnerIds())
            else:
                unowned = kind.plan(generation, before, now, OwnerIds()).run()
            assert unowned == 0 or os.geteuid() != 0
            assert listed(generation) == expected_entries(tree)
            assert generation.stat().st_mtime_ns == tree[ROOT].mtime
            before = now
        assert [path.name for path in folder.iterdir()] == ["generations"]
    finally:
        shutil.rmtree(folder)


@examples(25)
@given(RANDOMS)
@example(Seeded(1))
def test_any_changes(random: Random) -> None:
    tree = listable(random_tree(random, random.choice([3, 30, 500])))
    steps = [tree]
    for _ in range(4):
        steps.append(listable(changed_tree(random, steps[-1], random.choice([1, 3, 20]))))
    prove(*steps)


def moved(old: Tree, new: Tree) -> list[Moved]:
    objects = MemoryObjects()
    changes = diff(snapshot(old, objects), snapshot(new, objects))
    return [each for each in changes if isinstance(each, Moved)]


def test_a_folder_moves_to_where_a_file_was() -> None:
    old = tree_of(file(b"x", 7), directory(b"d", 5), *files(b"d", 300))
    new = tree_of(directory(b"x", 5), *files(b"x", 300))
    assert moved(old, new) == [Moved(RelPath(b"d"), RelPath(b"x"))]
    prove(old, new, old)


def test_a_folder_moves_out_of_one_that_becomes_a_file() -> None:
    old = tree_of(directory(b"a"), directory(b"a/d", 5), *files(b"a/d", 300))
    new = tree_of(file(b"a", 1), directory(b"b"), directory(b"b/d", 5), *files(b"b/d", 300))
    assert len(moved(old, new)) == 1
    prove(old, new, old)


def test_links_that_lead_out_of_a_folder_that_moves() -> None:
    def tree(where: bytes) -> Tree:
        folder, linked = where + b"/d", where + b"/d/zz"
        tree = tree_of(
            *(directory(name) for name in (b"a", b"b", folder)),
            *(file(name + b"/leader", 9, 3) for name in (b"a", b"b")),
            *files(folder, 300),
        )
        tree[RelPath(linked)] = file(linked, 9, 3, link=RelPath(where + b"/leader"))
        return tree

    old, new = tree(b"a"), tree(b"b")
    assert len(moved(old, new)) == 1
    prove(old, new, old)
