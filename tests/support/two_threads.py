"""Two threads that call methods of one object of the engine, in a process that may hang.

`python -m tests.support.two_threads OBJECT FOLDER` prints the name of each method before it calls
it, while another thread is in the middle of a call that waits for Python.
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

from huai_native import _native
from huai_schema.errors import FormatError
from huai_schema.git.objects import Kind
from tests.support.schema.memory import MemoryObjects

BOUND = 60.0
"""Seconds after which a thread goes on although nothing has happened."""

Calls = tuple[Callable[[], object], dict[str, Callable[[], object]]]
"""A call that waits for Python, and the other calls of the same object by name."""


class Held:
    """A function that stays inside its first call until it is released."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.is_inside, self.is_released = Event(), Event()

    def __call__(self, *_: object) -> object:
        if not self.is_inside.is_set():
            self.is_inside.set()
            self.is_released.wait(BOUND)
        return self.answer


class HeldObjects(MemoryObjects):
    """Objects of which the first read or write is held."""

    def __init__(self, held: Held) -> None:
        super().__init__()
        self.held = held

    def write(self, kind: Kind, data: bytes) -> bytes:
        self.held()
        return super().write(kind, data)

    def read(self, oid: bytes, kind: Kind) -> bytes:
        self.held()
        return super().read(oid, kind)


def scan_of(tree: Path, owners: Held | None = None) -> _native.Scan:
    names = None if owners is None else (owners, owners)
    return _native.Scan(
        os.fsencode(tree),
        [],
        threads=1,
        one_file_system=True,
        owners=names,  # type: ignore[arg-type]
    )


def listing_of(tree: Path) -> tuple[bytes, bytes, bytes, bytes]:
    """Return the listing of the top directory, without digests."""
    frame = next(scan_of(tree))[0]
    if isinstance(frame, _native.Run) or len(frame) == 2:
        raise AssertionError(frame)
    return frame[0], frame[1], frame[2], b""


def run_calls(tree: Path, held: Held) -> Calls:
    for number in range(600):  # enough for objects that are written before the end
        (tree / "a" / str(number)).write_bytes(b"")
    scan = scan_of(tree)
    scan.watch([])
    _, run = next(scan)
    assert isinstance(run, _native.Run)
    layout = _native.Layout(HeldObjects(held))
    layout.add(*listing_of(tree))
    groups, found = _native.HardlinkGroups(), _native.FoundDigests()
    return lambda: layout.add_run(run), {
        "totals": lambda: run.totals,
        "file": lambda: run.file(0, 0),
        "directories": run.directories,
        "resolve_run": lambda: groups.resolve_run(run),
        "gather": lambda: found.gather(run),
        "finish": layout.finish,
        "add_run": lambda: layout.add_run(run),
    }


def scan_calls(tree: Path, held: Held) -> Calls:
    held.answer = b"root"
    scan = scan_of(tree, held)
    changes = _native.ChangeList(os.fsencode(tree))
    changes.close()
    return lambda: next(scan), {
        "watch": lambda: scan.watch([]),
        "next": lambda: next(scan, None),
        "look": lambda: scan.look(changes, os.fsencode(tree.parent / "record")),
    }


def tree_comparison_calls(tree: Path, held: Held) -> Calls:
    held.answer = 0
    rule = (0o7777, 0)
    handle = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    comparison = _native.TreeComparison(
        handle,
        (MemoryObjects(), 1000, [listing_of(tree)]),
        ([], (rule, rule, False)),
        scope=(b"", set(), b""),
        owners=(held, held),  # type: ignore[arg-type]
        content=False,
        opens_up=False,
        threads=1,
    )
    return lambda: comparison.batch(100, 100), {
        "waiting": comparison.waiting,
        "forget": lambda: comparison.forget(set()),
        "batch": lambda: comparison.batch(100, 100),
    }


def image_calls(tree: Path, held: Held) -> Calls:
    held.answer = (0, 0)
    path, attributes, leaves, _ = listing_of(tree)
    image = tree.parent / "image"
    image.write_bytes(b"")
    builder = _native.ImageBuilder(os.fsencode(image), held)  # type: ignore[arg-type]
    builder.count_links(path, leaves)
    return lambda: builder.add(path, attributes, leaves), {
        "entries": lambda: builder.entries,
        "count_links": lambda: builder.count_links(path, leaves),
        "finish": lambda: builder.finish(bytes(16)),
        "close": builder.close,
    }


class Packed:
    """An `ObjectReader` whose packs the engine reads by itself, but for the first object."""

    def __init__(self, packs: _native.Packs) -> None:
        self.packs = packs

    def read(self, oid: bytes, kind: Kind) -> bytes:
        found = self.packs.find(oid)
        assert found is not None
        assert found[0] == kind
        return found[1]


def packs_calls(tree: Path, held: Held) -> Calls:
    folder = os.fsencode(tree.parent)
    writer = _native.PackWriter(folder, b"pack-1", threads=1)
    layout = _native.Layout(writer)
    layout.add(*listing_of(tree))
    root = layout.finish()
    writer.finish()
    packs = _native.Packs(1 << 20)
    packs.add(folder)
    reader = Packed(packs)
    return lambda: packs.send(b"tree " + root.hex().encode(), root, held), {
        "add": lambda: packs.add(os.fsencode(tree)),
        "find": lambda: packs.find(root),
        "record": lambda: packs.record(root),
        "chain": lambda: packs.chain(root),
        "in": lambda: root in packs,
        "forget": packs.forget,
        "a walk": lambda: next(_native.Walk(reader, b"", root, 1000)),
        "a comparison": lambda: _native.Comparison((reader, root, 9), (reader, root, 9)).batch(9),
        "count_changes": lambda: _native.count_changes((reader, root, 9), (reader, root, 9)),
    }


def lent_objects(tree: Path, held: Held) -> tuple[HeldObjects, bytes]:
    """Return the objects of a snapshot of the top directory, and its root.

    No call is held before the caller clears `held.is_inside`.
    """
    objects = HeldObjects(held)
    layout = _native.Layout(objects)
    held.is_inside.set()
    layout.add(*listing_of(tree))
    return objects, layout.finish()


def listing_hashes_calls(tree: Path, held: Held) -> Calls:
    objects, root = lent_objects(tree, held)
    hashes = _native.ListingHashes(b"")
    held.is_inside.clear()
    return lambda: hashes.of_tree(root, objects), {
        "sound": lambda: hashes.sound,
        "added": lambda: hashes.added,
        "of_tree": lambda: hashes.of_tree(root, objects),
    }


def comparison_calls(tree: Path, held: Held) -> Calls:
    objects, root = lent_objects(tree, held)
    nothing = objects.write("tree", b"")
    comparison = _native.Comparison((objects, root, 9), (objects, nothing, 9))
    held.is_inside.clear()
    return lambda: comparison.batch(9), {"batch": lambda: comparison.batch(9)}


def walk_calls(tree: Path, held: Held) -> Calls:
    objects, root = lent_objects(tree, held)
    walk = _native.Walk(objects, b"", root, 1000)
    held.is_inside.clear()
    return lambda: next(walk, None), {"next": lambda: next(walk, None)}


def level_calls(tree: Path, held: Held) -> Calls:
    objects, root = lent_objects(tree, held)
    limit = _native.EntryLimit(1000)
    level = _native.Level(objects, b"", root, limit)
    held.is_inside.clear()
    return lambda: _native.Level(objects, b"", root, limit), {
        "next": lambda: next(level, None),
        "a new one": lambda: _native.Level(objects, b"", root, limit),
    }


def own_directory_calls(tree: Path, held: Held) -> Calls:
    objects, root = lent_objects(tree, held)
    directory = _native.OwnDirectory(objects, b"", root)
    held.is_inside.clear()
    return lambda: directory.leaf(b"file"), {
        "children": lambda: directory.children,
        "ids": lambda: directory.ids,
        "inlined": lambda: directory.inlined(b"a"),
        "leaf": lambda: directory.leaf(b"file"),
        "manifests": lambda: directory.manifests,
    }


def digested_calls(tree: Path, held: Held) -> Calls:
    objects, root = lent_objects(tree, held)
    digested = _native.Digested((objects, root, 1000), None)
    held.is_inside.clear()
    return lambda: digested.batch(9, 9), {"batch": lambda: digested.batch(9, 9)}


def file_list_calls(tree: Path, held: Held) -> Calls:
    objects, root = lent_objects(tree, held)
    files = _native.FileList((objects, root, 1000), ([], 0), None)
    held.is_inside.clear()
    return files.part, {"part": files.part, "left_out": lambda: files.left_out}


def ls_calls(tree: Path, held: Held) -> Calls:
    objects, root = lent_objects(tree, held)
    listing = _native.Ls((objects, root, 1000), ([], 0))
    held.is_inside.clear()
    return listing.part, {"part": listing.part}


def publish_order_calls(tree: Path, held: Held) -> Calls:
    objects, root = lent_objects(tree, held)
    order = _native.PublishOrder(
        (objects, root, 1000),
        [],
        volatile=(0, 0),
        stated=(0, 0),
        generic=(0, 0),
        profiles=[([[b"file"]], (0, 0))],
        assigned={},
    )
    held.is_inside.clear()
    return lambda: order.placement(b"a/0", symlink=False), {
        "stages": lambda: order.stages([(b"a/0", False)]),
        "placement": lambda: order.placement(b"a/0", symlink=False),
        "around": lambda: order.around(b"a"),
        "found": order.found,
        "repository": lambda: order.repository(0),
        "is_directory": lambda: order.is_directory(b"a"),
        "has_entry": lambda: order.has_entry(b"a"),
    }


OBJECTS: dict[str, Callable[[Path, Held], Calls]] = {
    "Run": run_calls,
    "Scan": scan_calls,
    "TreeComparison": tree_comparison_calls,
    "ImageBuilder": image_calls,
    "Packs": packs_calls,
    "ListingHashes": listing_hashes_calls,
    "Comparison": comparison_calls,
    "Walk": walk_calls,
    "Level": level_calls,
    "OwnDirectory": own_directory_calls,
    "Digested": digested_calls,
    "FileList": file_list_calls,
    "Ls": ls_calls,
    "PublishOrder": publish_order_calls,
}
"""The classes that may wait for Python in a call; a `Layout` is one of a `Run`."""


def trees(folder: Path) -> Iterator[Path]:
    """Make a small tree in a folder of its own, again and again."""
    for number in range(20):
        tree = folder / str(number) / "tree"
        for name in ("a", "b"):
            (tree / name).mkdir(parents=True)
            for file in range(3):
                (tree / name / str(file)).write_bytes(b"")
        (tree / "file").write_bytes(b"")
        yield tree


def call_each(make: Callable[[Path, Held], Calls], folder: Path) -> None:
    """Call each method while another thread waits for Python in a call of the same object."""
    names = [*make(next(trees(folder / "names")), Held(None))[1]]
    for name, tree in zip(names, trees(folder), strict=False):
        show(name)
        held = Held(None)
        call, others = make(tree, held)
        thread = Thread(target=quietly, args=(call,))
        thread.start()
        assert held.is_inside.wait(BOUND), "the call does not come to Python"
        # Python stays with this thread until its call lets go of it.
        held.is_released.set()
        quietly(others[name])
        thread.join()


def quietly(call: Callable[[], object]) -> None:
    """An error is an answer: the order of the two calls is not the one that they are made for."""
    try:
        call()
    except (RuntimeError, OSError, FormatError, IndexError) as error:
        show(repr(error))


def show(text: str) -> None:
    """Print a line at once, for the test to say where the process hung."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.setswitchinterval(1000)
    call_each(OBJECTS[sys.argv[1]], Path(sys.argv[2]))
