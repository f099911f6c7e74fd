"""Fuzzed objects of an upstream that complete a pack.

An input is several parts, with `NEXT` between them.
"""

import re

from huai_schema.errors import FormatError
from huai_schema.git.objects import Kind
from tests.fuzz.target import Target
from tests.support.git_objects import object_id
from tests.support.packs import PackObjects, full_record, pack, resolve

NEXT = b"\n--\n"


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
}
