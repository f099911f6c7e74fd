"""A search finds what a look at every name finds, whatever was searched before."""

import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_native._native import NameIndex
from huai_schema.codec.columns import batch_entries
from huai_schema.entries import Directory, Entry
from huai_schema.errors import FormatError
from huai_schema.git.objects import Kind
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import ROOT, RelPath, basename, parent
from huai_server.http.pages.search import Searcher
from tests.support.examples import examples
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.strategies import RANDOMS
from tests.support.schema.trees import Tree, changed_tree, file, random_tree, snapshot, tree_of

MOST, SECONDS = 1000, 60.0
SIZES = st.sampled_from([5, 129, 600, 1500])


def oracle(text: bytes) -> Callable[[bytes], bool]:
    """Return the rule for paths."""
    text = text.lower()
    literal = max(re.split(rb"[*?]", text.rpartition(b"/")[2]), key=len)
    escaped = b"".join({42: b".*", 63: b"."}.get(byte, re.escape(b"%c" % byte)) for byte in text)
    pattern = re.compile((b"(.*/)?" if b"/" in text else b"") + escaped, re.DOTALL)
    is_glob = bool(re.search(rb"[*?]", text))

    def matches(path: bytes) -> bool:
        path = path.lower()
        subject = path if b"/" in text else basename(RelPath(path))
        is_match = pattern.fullmatch(subject) if is_glob else text in subject
        return bool(is_match) and literal in basename(RelPath(path))

    return matches


def is_inside(entry: Entry, below: RelPath) -> bool:
    directory = entry.path if isinstance(entry, Directory) else parent(entry.path)
    return below in (ROOT, directory) or directory.startswith(below + b"/")


def search(
    index: NameIndex, where: Snapshot, text: bytes, below: bytes = b"", most: int = MOST
) -> tuple[list[Entry], str | None]:
    batch, limit, _ = index.search(where.arguments, (below, text, most), SECONDS)
    return batch_entries(batch), limit


def a_text(random: Random, tree: Tree) -> bytes:
    """Return a text that is often in a path, sometimes with wildcards."""
    path = bytes(random.choice([*tree])).replace(b"*", b"").replace(b"?", b"")
    begin = random.randrange(len(path) + 1)
    text = bytearray(path[begin : begin + random.randrange(1, 12)] or b"f1")
    for _ in range(random.choice([0, 0, 1, 3])):
        text[random.randrange(len(text))] = random.choice(b"*?/")
    return bytes(text).upper() if random.random() < 0.2 else bytes(text)


@examples(60)
@given(RANDOMS, SIZES, st.sampled_from([1 << 20, 20_000, 0]))
def test_a_search_finds_what_a_look_at_every_name_finds(
    random: Random, size: int, memory: int
) -> None:
    objects, index = MemoryObjects(), NameIndex(memory)
    tree = random_tree(random, size)
    for _ in range(3):
        where = snapshot(tree, objects)
        for below in (ROOT, random.choice([*tree])):
            text = a_text(random, tree)
            rule = oracle(text)
            expected = [e for e in where.entries() if is_inside(e, below) and rule(e.path)]
            assert search(index, where, text, below) == (expected[:MOST], _limit(expected, MOST))
            assert search(index, where, text, below, 3) == (expected[:3], _limit(expected, 3))
        tree = changed_tree(random, tree, 5)


def _limit(expected: list[Entry], most: int) -> str | None:
    return "hits" if len(expected) > most else None


def test_a_search_after_a_change_reads_what_changed() -> None:
    objects, index = MemoryObjects(), NameIndex(1 << 20)
    names = [b"%02d/%04d" % (each % 20, each) for each in range(20_000)]
    tops = [Directory(RelPath(b"%02d" % each), 0) for each in range(20)]
    first = tree_of(*tops, *map(file, names))
    second = {**first, RelPath(b"07/new"): file(b"07/new")}
    for tree, most in ((first, 1000), (first, 0), (second, 12), (second, 0)):
        objects.read_ids.clear()
        search(index, snapshot(tree, objects), b"none")
        assert len(objects.read_ids) <= most
    # What is found is read again: attributes are not kept.
    (entry,), _ = search(index, snapshot(second, objects), b"NEW")
    assert entry == second[entry.path]


def test_what_a_search_of_damaged_metadata_read_is_not_kept() -> None:
    objects, searcher, place = MemoryObjects(), Searcher(), Path("m.git")
    tree = tree_of(*(file(b"%05d" % each) for each in range(2000)))
    searcher.search(place, snapshot(tree, objects), ROOT, b"none")
    assert searcher.kept_bytes > 0
    intact = {*objects.objects}
    tree[RelPath(b"new")] = file(b"new")
    where = snapshot(tree, objects)
    for lost in {*objects.objects} - intact - {where.tree}:
        del objects.objects[lost]
    with pytest.raises(FormatError):
        searcher.search(place, where, ROOT, b"none")
    assert searcher.kept_bytes == 0


class SlowObjects(MemoryObjects):
    """Objects of which one is read when a time is over."""

    def __init__(self, quick: int) -> None:
        super().__init__()
        self.quick = quick
        self.until = 0.0

    def read(self, oid: bytes, kind: Kind) -> bytes:
        while len(self.read_ids) == self.quick and time.monotonic() < self.until:
            pass
        return super().read(oid, kind)


def test_a_search_that_ran_out_of_time_goes_on_where_it_was() -> None:
    objects, index = SlowObjects(100), NameIndex(1 << 20)
    where = snapshot(tree_of(*(file(b"%05d" % each) for each in range(20_000))), objects)
    seconds = 1.0
    objects.until = time.monotonic() + 3 * seconds  # the search may begin later
    batch, limit, size = index.search(where.arguments, (b"", b"1", MOST), seconds)
    assert (batch, limit) == (None, "time")
    assert size > 0
    assert len(objects.read_ids) <= 101
    assert search(index, where, b"none") == ([], None)
    blobs = Counter(oid for oid in objects.read_ids if objects.objects[oid][0] == "blob")
    assert set(blobs.values()) == {1}
    assert len(search(index, where, b"1")[0]) == MOST
