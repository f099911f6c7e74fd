"""Two threads that call methods of one object of the engine, in a process that may hang.

`python -m tests.support.two_threads OBJECT FOLDER` prints the name of each method before it calls
it, while another thread is in the middle of a call that waits for Python.
"""

import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

from huai_native import _native
from huai_schema.codec.listing import Listing
from huai_schema.errors import FormatError
from huai_schema.git.objects import Kind
from huai_server.scan.types import ScanOptions
from tests.support.scanned import listings
from tests.support.schema.memory import MemoryObjects

BOUND = 60.0
"""Seconds after which a thread goes on although nothing has happened."""

Calls = tuple[Callable[[], object], dict[str, Callable[[], object]]]
"""A call that waits for Python, and the other calls of the same object by name."""


class HeldCall:
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

    def __init__(self, call: HeldCall) -> None:
        super().__init__()
        self.call = call

    def write(self, kind: Kind, data: bytes) -> bytes:
        self.call()
        return super().write(kind, data)

    def read(self, oid: bytes, kind: Kind) -> bytes:
        self.call()
        return super().read(oid, kind)


def listing_of(tree: Path) -> Listing:
    """Return the listing of the top directory, without digests."""
    return listings(tree, ScanOptions(owners=False))[0]


def tree_reader_calls(tree: Path, call: HeldCall) -> Calls:
    call.answer = b"root"
    owners = (call, call)
    root = os.fsencode(tree)
    reader = _native.TreeReader(root, ([], 1, True, True, None), owners, None, OSError)  # type: ignore[arg-type]
    changes = _native.ChangeList([root])
    changes.close()
    objects, past = lent_objects(tree, HeldCall(None))
    record = os.fsencode(tree.parent / "record")
    mounts: tuple[set[bytes], bool, bool] = (set(), False, False)
    lent, request = (objects, past, 1000), (changes, True, record)
    return lambda: reader.read_whole(None, mounts, print, None, (b"", [], None)), {
        "read_listed": lambda: reader.read_listed(lent, request, print, None),
        "read_digests": lambda: reader.read_digests(changes, record),
        "keep_digests": reader.keep_digests,
        "read_whole": lambda: reader.read_whole(lent, mounts, print, None, (b"", [], None)),
    }


def tree_comparison_calls(tree: Path, call: HeldCall) -> Calls:
    call.answer = 0
    rule = (0o7777, 0)
    handle = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    comparison = _native.TreeComparison(
        handle,
        (MemoryObjects(), 1000, [listing_of(tree)]),
        ([], (rule, rule, False)),
        scope=(b"", set(), b""),
        owners=(call, call),  # type: ignore[arg-type]
        content=False,
        opens_up=False,
        threads=1,
    )
    return lambda: comparison.batch(100, 100), {
        "waiting": comparison.waiting,
        "forget": lambda: comparison.forget(set()),
        "batch": lambda: comparison.batch(100, 100),
    }


def maker_calls(tree: Path, call: HeldCall) -> Calls:
    call.answer = (0, 0)
    _, _, leaves, _ = listing_of(tree)
    root, building, attributes = tree.parent / "made", tree.parent / "building", (0, 0o755, None)
    for folder in (root, building):
        folder.mkdir()
    maker = _native.Maker(os.fsencode(root), os.fsencode(building), privileged=True)
    maker.make_directory(b"folder", attributes)
    return lambda: maker.make_leaves(b"", leaves, call), {  # type: ignore[arg-type]
        "make_file": lambda: maker.make_file(b"file", attributes, 1),
        "make_symlink": lambda: maker.make_symlink(b"symlink", attributes, b"x"),
        "make_link": lambda: maker.make_link(b"link", b"file"),
        "make_directory": lambda: maker.make_directory(b"folder", attributes),
        "set_attributes": lambda: maker.set_attributes(b"", attributes),
        "rename_directory": lambda: maker.rename_directory(b"folder", b"other"),
        "remove": lambda: maker.remove(b"other"),
        "leave": maker.leave,
        "unowned": lambda: maker.unowned,
    }


class Packed:
    """An `ObjectReader` whose packs the engine reads by itself, except the first object."""

    def __init__(self, packs: _native.Packs) -> None:
        self.packs = packs

    def read(self, oid: bytes, kind: Kind) -> bytes:
        stored = self.packs.find(oid)
        assert stored is not None
        assert stored[0] == kind
        return stored[1]


def packs_calls(tree: Path, call: HeldCall) -> Calls:
    folder = os.fsencode(tree.parent)
    writer = _native.PackWriter(folder, b"pack-1", threads=1)
    root = _native.write_tree([listing_of(tree)], writer)
    writer.finish()
    packs = _native.Packs(1 << 20)
    packs.add(folder)
    reader = Packed(packs)
    return lambda: packs.send(b"tree " + root.hex().encode(), root, call), {
        "add": lambda: packs.add(os.fsencode(tree)),
        "find": lambda: packs.find(root),
        "in": lambda: root in packs,
        "forget": packs.forget,
        "a walk": lambda: next(_native.Lookup(reader, root, 1000).subtree(b"")),
        "a comparison": lambda: _native.Comparison((reader, root, 9), (reader, root, 9)).batch(9),
        "count_changes": lambda: _native.count_changes((reader, root, 9), (reader, root, 9)),
    }


def lent_objects(tree: Path, call: HeldCall) -> tuple[HeldObjects, bytes]:
    """Return the objects of a snapshot of the top directory, and its root.

    No call is held before the caller clears `held.is_inside`.
    """
    objects = HeldObjects(call)
    call.is_inside.set()
    return objects, _native.write_tree([listing_of(tree)], objects)


def listing_hashes_calls(tree: Path, call: HeldCall) -> Calls:
    objects, root = lent_objects(tree, call)
    hashes = _native.ListingHashes(b"")
    call.is_inside.clear()
    return lambda: hashes.of_tree(root, objects), {
        "sound": lambda: hashes.sound,
        "added": lambda: hashes.added,
        "of_tree": lambda: hashes.of_tree(root, objects),
    }


def comparison_calls(tree: Path, call: HeldCall) -> Calls:
    objects, root = lent_objects(tree, call)
    nothing = objects.write("tree", b"")
    comparison = _native.Comparison((objects, root, 9), (objects, nothing, 9))
    call.is_inside.clear()
    return lambda: comparison.batch(9), {"batch": lambda: comparison.batch(9)}


def walk_calls(tree: Path, call: HeldCall) -> Calls:
    objects, root = lent_objects(tree, call)
    walk = _native.Lookup(objects, root, 1000).subtree(b"")
    call.is_inside.clear()
    return lambda: next(walk, None), {"next": lambda: next(walk, None)}


def lookup_calls(tree: Path, call: HeldCall) -> Calls:
    objects, root = lent_objects(tree, call)
    lookup = _native.Lookup(objects, root, 1000)
    call.is_inside.clear()
    return lambda: lookup.leaf(b"file"), {
        "own_tree": lambda: lookup.own_tree(b"a"),
        "leaf": lambda: lookup.leaf(b"file"),
        "subtree": lambda: lookup.subtree(b"a"),
        "level": lambda: lookup.level(b"", root),
        "attributes": lambda: lookup.attributes(b"a"),
        "part": lambda: lookup.part(b"", 0, 9),
    }


def name_index_calls(tree: Path, call: HeldCall) -> Calls:
    objects, root = lent_objects(tree, call)
    names, query = _native.NameIndex(1000), (b"", b"file", 9)
    call.is_inside.clear()

    def search() -> object:
        return names.search((objects, root, 1000), query, 60)

    return search, {"search": search}


def subtree_totals_calls(tree: Path, call: HeldCall) -> Calls:
    lookup = _native.Lookup(*lent_objects(tree, call), 1000)
    totals = _native.SubtreeTotals(1000)
    call.is_inside.clear()

    def count() -> object:
        return totals.count(lookup, [b""], 60)

    return count, {"count": count}


def bundle_calls(tree: Path, call: HeldCall) -> Calls:
    objects, root = lent_objects(tree, call)
    paths = b"file\0a/0\0"
    bundle = _native.BundleReader((objects, root, 1000), os.fsencode(tree), paths, 99)
    call.is_inside.clear()
    return lambda: bundle.read(99), {"read": lambda: bundle.read(99)}


def digested_calls(tree: Path, call: HeldCall) -> Calls:
    objects, root = lent_objects(tree, call)
    digested = _native.Digested((objects, root, 1000), None)
    call.is_inside.clear()
    return lambda: digested.batch(9, 9), {"batch": lambda: digested.batch(9, 9)}


def file_list_calls(tree: Path, call: HeldCall) -> Calls:
    objects, root = lent_objects(tree, call)
    files = _native.FileList((objects, root, 1000), ([], 0), "times")
    call.is_inside.clear()
    return lambda: next(files), {"next": lambda: next(files), "left_out": lambda: files.left_out}


def publish_order_calls(tree: Path, call: HeldCall) -> Calls:
    objects, root = lent_objects(tree, call)
    order = _native.PublishOrder(
        (objects, root, 1000),
        [],
        volatile=(0, 0),
        stated=(0, 0),
        generic=(0, 0),
        profiles=[([[b"file"]], (0, 0))],
        assigned={},
    )
    call.is_inside.clear()
    return lambda: order.placement(b"a/0", symlink=False), {
        "stages": lambda: order.stages([(b"a/0", False)]),
        "placement": lambda: order.placement(b"a/0", symlink=False),
        "around": lambda: order.around(b"a"),
        "found": order.found,
        "repository": lambda: order.repository(0),
        "is_directory": lambda: order.is_directory(b"a"),
        "has_entry": lambda: order.has_entry(b"a"),
    }


class HeldFile:
    """A file whose first write is held."""

    def __init__(self, call: HeldCall) -> None:
        self.call = call
        self.file = io.BytesIO()
        self.read, self.seek = self.file.read, self.file.seek

    def write(self, data: bytes, /) -> int:
        self.call()
        return self.file.write(data)


def sent_entries(count: int) -> bytes:
    """Return what an rsync daemon sends for so many empty files, and one in each of two folders."""
    attributes = bytes(7)
    entries = b"\1\1." + attributes + (0o40755).to_bytes(4, "little") + b"\0\0"
    for name in (
        *(b"%0200d" % number for number in range(count)),
        b"d/%0198d" % 0,
        b"e/%0198d" % 0,
    ):
        entries += b"\1\xc8" + name + attributes + (0o100644).to_bytes(4, "little") + b"\0\0"
    return (7 << 24 | len(entries)).to_bytes(4, "little") + entries


def entry_list_calls(tree: Path, call: HeldCall) -> Calls:
    entries = _native.EntryList(HeldFile(call), 1_000_000)
    _native.RsyncList(31, entries).feed(bytes(5) + sent_entries(3))
    return entries.entries, {
        "skipped": lambda: entries.skipped,
        "entries": entries.entries,
        "amend": lambda: entries.amend((*lent_objects(tree, HeldCall(None)), 1000), [], None),
        "write_tree": lambda: entries.write_tree(None),
    }


def rsync_list_calls(_: Path, call: HeldCall) -> Calls:
    entries = _native.EntryList(HeldFile(call), 1_000_000)
    reader = _native.RsyncList(31, entries)
    reader.feed(bytes(5))
    return lambda: reader.feed(sent_entries(3000)), {
        "is_complete": lambda: reader.is_complete,
        "is_partial": lambda: reader.is_partial,
        "messages": reader.messages,
        "feed": lambda: reader.feed(b""),
    }


def text_list_calls(_: Path, call: HeldCall) -> Calls:
    entries = _native.EntryList(HeldFile(call), 1_000_000)
    reader = _native.TextList(entries)
    lines = b"".join(
        b'{"path": "%d/f", "size": 1, "mtime": 1}\n' % number for number in range(9000)
    )
    return lambda: reader.feed(lines), {
        "feed": lambda: reader.feed(b""),
        "finish": reader.finish,
        "has_other_digests": lambda: reader.has_other_digests,
    }


OBJECTS: dict[str, Callable[[Path, HeldCall], Calls]] = {
    "TreeReader": tree_reader_calls,
    "TreeComparison": tree_comparison_calls,
    "Maker": maker_calls,
    "Packs": packs_calls,
    "ListingHashes": listing_hashes_calls,
    "Comparison": comparison_calls,
    "Walk": walk_calls,
    "Lookup": lookup_calls,
    "NameIndex": name_index_calls,
    "SubtreeTotals": subtree_totals_calls,
    "BundleReader": bundle_calls,
    "Digested": digested_calls,
    "FileList": file_list_calls,
    "PublishOrder": publish_order_calls,
    "EntryList": entry_list_calls,
    "RsyncList": rsync_list_calls,
    "TextList": text_list_calls,
}
"""The classes that may wait for Python in a call."""


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


def call_each(make: Callable[[Path, HeldCall], Calls], folder: Path) -> None:
    """Call each method while another thread waits for Python in a call of the same object."""
    names = [*make(next(trees(folder / "names")), HeldCall(None))[1]]
    for name, tree in zip(names, trees(folder), strict=False):
        show(name)
        blocker = HeldCall(None)
        call, other_calls = make(tree, blocker)
        thread = Thread(target=quietly, args=(call,))
        thread.start()
        assert blocker.is_inside.wait(BOUND), "the call does not come to Python"
        # Python stays with this thread until its call lets go of it.
        blocker.is_released.set()
        quietly(other_calls[name])
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
