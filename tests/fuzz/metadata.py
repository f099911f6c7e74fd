"""Fuzzed objects of an upstream, several at once: comparison, and completion of a pack.

An input is several parts, with `NEXT` between them.
"""

import re
from random import Random

from huai_schema.diff.changes import Change, joined
from huai_schema.diff.diff import diff
from huai_schema.entries import Entry, File
from huai_schema.errors import FormatError
from huai_schema.git.objects import Kind
from huai_schema.layout.snapshot import Snapshot
from tests.fuzz.target import Target
from tests.support.git_objects import object_id
from tests.support.packs import PackObjects, full_record, pack, resolve
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.trees import directory, file, files, random_tree, snapshot

NEXT = b"\n--\n"


class _Side:
    """A snapshot of which any object can be another one."""

    def __init__(self, objects: MemoryObjects, tree: bytes) -> None:
        self._objects = objects
        self._tree = tree
        self._ids = sorted(objects.objects)

    def seeds(self) -> list[bytes]:
        """Return each object unchanged, with its number before it."""
        stored = [self._objects.objects[oid][1] for oid in self._ids[:256]]
        return [bytes((number,)) + data for number, data in enumerate(stored)]

    def hostile(self, data: bytes) -> Snapshot:
        """Return the objects with one replaced by `data`, or unchanged if `data` is empty."""
        objects = self._objects
        if data:
            objects = objects.copy()
            oid = self._ids[data[0] % len(self._ids)]
            objects.objects[oid] = objects.objects[oid][0], data[1:]
        return Snapshot(objects, self._tree, 1000)


def _side(moved: bytes, *changed: File) -> _Side:
    """Small things, and two directories with trees of their own; of which one has `moved`."""
    tree = random_tree(Random(4), 40)
    tree |= {each.path: each for name in (moved, b"stays") for each in _full(name)}
    tree |= {each.path: each for each in changed}
    objects = MemoryObjects()
    return _Side(objects, snapshot(tree, objects).tree)


def _full(name: bytes) -> list[Entry]:
    return [directory(name), *files(name, 128)]


_OLD = _side(b"here")
_NEW = _side(b"there", file(b"new"), file(b"stays/f000005", 9), file(b"stays/x"))


def _diff(data: bytes) -> object:
    old, _, new = data.partition(NEXT)
    changes = list(diff(_OLD.hostile(old), _NEW.hostile(new)))
    return len(joined([each for each in changes if isinstance(each, Change)])) > 0


_HERE = PackObjects()
_COMPLETE = _HERE.tree(a=_HERE.blob(b"a"), t=_HERE.tree(b=_HERE.blob(b"b")))
_KINDS: dict[bytes, Kind] = {b"b": "blob", b"t": "tree", b"c": "commit"}
_OID = re.compile(rb"@([0-9])@{18}")
_HEX = re.compile(rb"#([0-9])#{38}")


def _connected(data: bytes) -> object:
    """Objects of a pack, each by the first letter of its kind and its content.

    Where they name one another they say its number: the pack's come before what is here.
    """
    names: list[bytes] = [_COMPLETE, *_HERE.objects]
    records: list[bytes] = []
    commits: list[bytes] = []

    def replace_oid(stored: re.Match[bytes]) -> bytes:
        return names[int(stored[1]) % len(names)]

    for part in data.split(NEXT):
        kind = _KINDS.get(part[:1], "blob")
        content = _OID.sub(replace_oid, part[1:])
        content = _HEX.sub(lambda match: replace_oid(match).hex().encode(), content)
        names.insert(0, object_id(kind, content))
        records.append(full_record(content, kind))
        if kind == "commit":
            commits.append(names[0])
    for oid in commits:
        resolve(pack(records), _HERE, work=1 << 22, target=(oid, [_COMPLETE]))
    return len(commits) > 0


def _oid(number: int) -> bytes:
    return b"@%d%b" % (number, b"@" * 18)


def _item(number: int, name: bytes = b"a", mode: bytes = b"100644") -> bytes:
    return b"%b %b\0%b" % (mode, name, _oid(number))


def _commit(number: int) -> bytes:
    return b"ctree #%d%b\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nx" % (number, b"#" * 38)


_PACKS = [
    NEXT.join((b"bx", b"t" + _item(0), _commit(0))),
    NEXT.join(
        (b"bx", b"t" + _item(0), b"t" + _item(0, b"t", b"40000") + _item(1, b"u"), _commit(0))
    ),
    NEXT.join((b"t" + _item(1), b"t" + _item(1, b"a") + _item(0, b"t", b"40000"), _commit(0))),
    NEXT.join((b"t" + _item(0, b"t", b"40000"), _commit(0), _commit(2))),
]

METADATA = {
    "connected": Target(
        _connected, (FormatError,), _PACKS, [NEXT, *map(_oid, range(5)), b"40000 ", b"100644 "]
    ),
    "diff": Target(
        _diff,
        (FormatError,),
        [
            b"",
            *(seed for seed in _OLD.seeds()),
            *(NEXT + seed for seed in _NEW.seeds()),
            *(old + NEXT + new for old, new in zip(_OLD.seeds(), _NEW.seeds(), strict=False)),
        ],
        [NEXT],
    ),
}
