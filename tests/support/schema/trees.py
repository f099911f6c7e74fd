"""Trees as dictionaries, and random ones that are cheap to make at realistic sizes."""

import posixpath
from collections.abc import Iterable, Iterator
from random import Random
from typing import TypeAlias

from huai_native._native import write_tree
from huai_schema.codec.listing import Listing
from huai_schema.diff.changes import Change, Moved, differing
from huai_schema.diff.diff import Difference
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import ROOT, RelPath, join, parent, path_order
from tests.support.schema.lines import encode_directory, encode_leaf
from tests.support.schema.memory import MemoryObjects

Tree: TypeAlias = dict[RelPath, Entry]

ODD = b"ab\n\t\r\\\xff-#= .>\x7f\x01"


def tree_of(*entries: Entry) -> Tree:
    tree: Tree = {ROOT: Directory(ROOT, 0)}
    tree.update((entry.path, entry) for entry in entries)
    return tree


def file(path: bytes, size: int = 0, mtime: int = 0, **more: object) -> File:
    return File(RelPath(path), size, mtime)._replace(**more)  # type: ignore[arg-type]


def directory(path: bytes, mtime: int = 0) -> Directory:
    return Directory(RelPath(path), mtime)


def files(where: bytes, count: int, mtime: int = 0) -> list[File]:
    return [file(join(RelPath(where), b"f%06d" % n), n, mtime) for n in range(count)]


def listings(tree: Iterable[Entry]) -> Iterator[Listing]:
    """In tree order, whatever the order of the entries."""
    directories: list[Directory] = []
    leaves: dict[bytes, list[File | Symlink]] = {}
    for entry in tree:
        if isinstance(entry, Directory):
            directories.append(entry)
        else:
            leaves.setdefault(parent(entry.path), []).append(entry)
    for directory in sorted(directories, key=lambda each: path_order(each.path)):
        inside = sorted(leaves.get(directory.path, []), key=lambda each: each.path)
        lines = b"".join(map(encode_leaf, inside))
        column = b"".join(e.digest or bytes(32) for e in inside if isinstance(e, File))
        column = column if column.strip(b"\0") else b""
        yield Listing(directory.path, encode_directory(directory), lines, column)


def snapshot(tree: Tree, objects: MemoryObjects | None = None) -> Snapshot:
    objects = objects if objects is not None else MemoryObjects()
    return Snapshot(objects, write_tree(listings(tree.values()), objects))


def random_tree(random: Random, size: int) -> Tree:
    """Nested, crowded and odd in turns; some hardlinks, some digests."""
    tree: Tree = {ROOT: Directory(ROOT, random.randrange(-(10**18), 10**18))}
    directories = [ROOT]
    few = random.random() < 0.5
    while len(tree) < size:
        where = random.choice(directories[-6:] if random.random() < 0.5 else directories)
        if few and random.random() < 0.8:
            where = directories[len(directories) // 2]
        add_random(random, tree, where, directories)
    settle_links(tree)
    return tree


def add_random(
    random: Random, tree: Tree, where: RelPath, directories: list[RelPath] | None = None
) -> None:
    name = b"f%d" % random.randrange(10**6)
    if random.random() < 0.2:
        name = bytes(random.choice(ODD) for _ in range(4))
    path = join(where, name)
    if name in (b".", b"..") or path in tree:
        return
    kind = random.random()
    times = random.choice([0, 5, random.randrange(-(10**18), 10**18)])
    if kind < 0.12:
        tree[path] = Directory(path, times, random.choice([0o755, 0o2775]))
        if directories is not None:
            directories.append(path)
    elif kind < 0.2:
        tree[path] = Symlink(path, b"../x\n", times, owner=random.choice([b"root", b"ftp"]))
    else:
        digest = random.choice([None, bytes([random.randrange(1, 256)]) * 32])
        link = random.choice(list(tree)) if random.random() < 0.05 else None
        mode, owner = random.choice([0o644, 0, 0o4755]), random.choice([b"root", b"#5"])
        group = random.choice([b"root", b"a\tb"])
        size = random.randrange(100)
        tree[path] = File(path, size, times, mode, owner, group, link, digest)


def settle_links(tree: Tree) -> None:
    """Make every link field true again, or drop it."""
    for path, entry in tree.items():
        if not isinstance(entry, File) or entry.link is None:
            continue
        leader = tree.get(entry.link)
        good = isinstance(leader, File) and leader.link is None
        good = good and leaf_order(entry.link) < leaf_order(path)
        if good and isinstance(leader, File):
            tree[path] = leader._replace(path=path, link=leader.path)
        else:
            tree[path] = entry._replace(link=None)


def leaf_order(path: bytes) -> list[tuple[int, bytes]]:
    """Sorts leaves in tree order."""
    *above, name = path.split(b"/")
    return [*((1, each) for each in above), (0, name)]


def changed_tree(random: Random, tree: Tree, steps: int) -> Tree:
    """A few edits: attributes, content, types, deletions, additions, renames."""
    new = dict(tree)
    edits = [_edit, _delete, _retype, _rename, _add]
    for _ in range(steps):
        path = random.choice(list(new))
        if path:
            random.choice(edits)(random, new, path)
    for path, entry in new.items():
        if isinstance(entry, File) and entry.link is not None:
            new[path] = entry._replace(digest=None)
    settle_links(new)
    return new


def _edit(_random: Random, tree: Tree, path: RelPath) -> None:
    entry = tree[path]
    tree[path] = entry._replace(mtime=entry.mtime + 1)
    if isinstance(entry, File):
        tree[path] = entry._replace(digest=b"x" * 32, size=entry.size + 1)


def _delete(_random: Random, tree: Tree, path: RelPath) -> None:
    for below in _at_or_below(tree, path):
        del tree[below]


def _retype(random: Random, tree: Tree, path: RelPath) -> None:
    _delete(random, tree, path)
    kinds: list[Entry] = [Symlink(path, b"t", 1), File(path, 1, 1), Directory(path, 1)]
    tree[path] = random.choice(kinds)


def _rename(random: Random, tree: Tree, path: RelPath) -> None:
    new = RelPath(b"zzz%d" % random.randrange(10**6))
    moved = {below: tree.pop(below) for below in _at_or_below(tree, path)}
    tree.update(_moved(moved, path, new))


def _add(random: Random, tree: Tree, _path: RelPath) -> None:
    directories = [path for path, entry in tree.items() if isinstance(entry, Directory)]
    for _count in range(random.choice([1, 3, 200])):
        add_random(random, tree, random.choice(directories))


def insert(tree: Tree, place: bytes, part: Tree) -> None:
    """Put a whole tree into another one, with the directories above it."""
    *above, _ = place.split(b"/")
    for count in range(len(above)):
        path = RelPath(b"/".join(above[: count + 1]))
        tree.setdefault(path, Directory(path, 0))
    for path, entry in part.items():
        target = join(RelPath(place), path) if path else RelPath(place)
        tree[target] = entry._replace(path=target)
        if isinstance(entry, File) and entry.link is not None:
            tree[target] = entry._replace(path=target, link=join(RelPath(place), entry.link))


def _at_or_below(tree: Tree, path: bytes) -> list[RelPath]:
    return [each for each in tree if each == path or each.startswith(path + b"/")]


def _moved(tree: Tree, old: bytes, new: bytes) -> Tree:
    moved: Tree = {}
    for path, entry in tree.items():
        target = RelPath(new + path[len(old) :])
        link = entry.link if isinstance(entry, File) else None
        if isinstance(entry, File) and link is not None:
            relative = posixpath.relpath(b"/" + link, b"/" + parent(path))
            again = posixpath.normpath(posixpath.join(parent(target), relative))
            leaves = again == b".." or again.startswith(b"../")
            moved[target] = entry._replace(path=target, link=link if leaves else RelPath(again))
        else:
            moved[target] = entry._replace(path=target)
    return moved


def replay(tree: Tree, differences: Iterable[Difference]) -> Tree:
    """Return the tree that a diff of `tree` leads to; asserts that each step fits."""
    result, arrived = dict(tree), Tree()
    differences = list(differences)
    for step in differences:
        if isinstance(step, Moved):
            moved = {path: result.pop(path) for path in _at_or_below(result, step.old)}
            assert moved, step
            assert not any(_is_in(change.path, step.new) for change in _before(step, differences))
            arrived.update(_moved(moved, step.old, step.new))
    for change in differences:
        if isinstance(change, Change) and change.old is not None:
            side = result if result.get(change.path) == change.old else arrived
            assert side.pop(change.path) == change.old
    for change in differences:
        if isinstance(change, Change) and change.new is not None:
            assert change.path not in result.keys() | arrived.keys()
            result[change.path] = change.new
    assert not result.keys() & arrived.keys()
    return result | arrived


def _before(step: Moved, differences: list[Difference]) -> Iterator[Change]:
    before = differences[: differences.index(step)]
    return (each for each in before if isinstance(each, Change))


def _is_in(path: RelPath, directory: RelPath) -> bool:
    return path.startswith(directory + b"/")


def same(one: Tree, other: Tree) -> bool:
    """Return true if trees are equal, except digests that one side does not know."""
    return one.keys() == other.keys() and not any(
        differing(one[path], other[path]) for path in one if one[path] != other[path]
    )
