"""Packs made by hand, also such as no git would write, and a repository in memory."""

import os
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha1
from pathlib import Path
from tempfile import TemporaryDirectory

from huai_client.metadata.git.objects import GitObject, Objects
from huai_native._native import install_pack
from huai_schema.git.objects import Kind, TreeItem, encode_tree
from tests.support.git_objects import object_id

_KIND_CODES: dict[Kind, int] = {"commit": 1, "tree": 2, "blob": 3}


OFFSET_DELTA, NAMED_DELTA = 6, 7


class PackObjects:
    """Objects in memory."""

    def __init__(self) -> None:
        self.objects: dict[bytes, GitObject] = {}

    def find(self, oid: bytes) -> GitObject | None:
        return self.objects.get(oid)

    def __contains__(self, oid: bytes) -> bool:
        return oid in self.objects

    def add(self, kind: Kind, data: bytes) -> bytes:
        oid = object_id(kind, data)
        self.objects[oid] = GitObject(kind, data)
        return oid

    def blob(self, data: bytes) -> bytes:
        return self.add("blob", data)

    def tree(self, **items: bytes) -> bytes:
        """Names that begin with `t` are trees, all others blobs."""
        lines = [TreeItem(name.encode(), oid, name[0] == "t") for name, oid in items.items()]
        return self.add("tree", encode_tree(lines))

    def commit(self, tree: bytes, *parents: bytes) -> str:
        lines = [f"tree {tree.hex()}", *(f"parent {parent.hex()}" for parent in parents)]
        text = "\n".join([*lines, "author a <a> 1 +0000", "committer a <a> 1 +0000", "", "x"])
        return self.add("commit", text.encode()).hex()


def full_record(data: bytes, kind: Kind = "blob") -> bytes:
    """A record that stands on its own."""
    return record(_KIND_CODES[kind], data)


def record(
    code: int, data: bytes, *, size: int | None = None, base: bytes = b"", level: int = -1
) -> bytes:
    """A record; `size` is what it claims, `base` stands between the header and the data."""
    return _header(code, len(data) if size is None else size) + base + zlib.compress(data, level)


def on_name(base: bytes, delta: bytes) -> bytes:
    """A delta whose base is named by its id."""
    return record(NAMED_DELTA, delta, base=base)


def on_offset(distance: int, delta: bytes) -> bytes:
    """A delta whose base begins `distance` bytes before it."""
    return record(OFFSET_DELTA, delta, base=encode_distance(distance))


def encode_distance(distance: int) -> bytes:
    """Seven bits a byte, the highest first, each but the last one less (gitformat-pack)."""
    digits = [distance & 0x7F]
    distance >>= 7
    while distance:
        distance -= 1
        digits.append(0x80 | distance & 0x7F)
        distance >>= 7
    return bytes(reversed(digits))


def pack_header(objects: int) -> bytes:
    """The first bytes of a pack with this number of objects."""
    return struct.pack(">4sII", b"PACK", 2, objects)


def pack(records: Sequence[bytes], *, count: int | None = None) -> bytes:
    """A pack with the right checksum; `count` is what it claims."""
    body = pack_header(len(records) if count is None else count) + b"".join(records)
    return body + sha1(body, usedforsecurity=False).digest()


def length(value: int) -> bytes:
    """A size at the head of a delta."""
    delta = bytearray()
    while value > 0x7F:
        delta.append(value & 0x7F | 0x80)
        value >>= 7
    delta.append(value)
    return bytes(delta)


def delta(before: int, after: int, *steps: bytes) -> bytes:
    """A delta; `before` and `after` are the sizes that it claims."""
    return length(before) + length(after) + b"".join(steps)


def insert(data: bytes) -> bytes:
    """Up to 127 bytes of its own."""
    return bytes([len(data)]) + data


def copy(offset: int, size: int) -> bytes:
    """Bytes of the base, in the long form."""
    return b"\xff" + offset.to_bytes(4, "little") + size.to_bytes(3, "little")


def appended(base: bytes, data: bytes) -> bytes:
    """A delta that adds up to 127 bytes at the end."""
    instructions = [copy(0, len(base))] if base else []  # a size of 0 would be 64 KiB
    return delta(len(base), len(base) + len(data), *instructions, insert(data))


def resolve(
    packed: bytes,
    objects: Objects | None = None,
    *,
    room: int = 1 << 20,
    naming: int = 1 << 20,
    work: int = 1 << 24,
    check: Callable[[], None] = lambda: None,
    target: tuple[bytes, list[bytes]] | None = None,
) -> dict[bytes, tuple[int, int]]:
    """Install a pack as `install_pack` does; the positions of its objects and of their bases."""
    with TemporaryDirectory() as folder:
        received = Path(folder, "received")
        received.write_bytes(packed)
        install_pack(
            os.fsencode(folder),
            b"received",
            PackObjects() if objects is None else objects,
            check,
            target=target,
            work=work,
            room=(room, naming),
        )
        return {
            oid: place
            for path in Path(folder).glob("*.idx")
            for oid, place in read_index(path.read_bytes()).items()
        }


def make_index(places: Iterable[tuple[bytes, int, int]], checksum: bytes) -> bytes:
    """Make the index of a pack of less than 2 GiB: ids, offsets and CRC-32s of its records."""
    ordered = sorted(places)
    fanout = [sum(oid[0] <= byte for oid, _, _ in ordered) for byte in range(256)]
    oids, offsets, crcs = zip(*ordered, strict=True) if ordered else ((), (), ())
    numbers = struct.pack(f">{2 * len(ordered)}I", *crcs, *offsets)
    index = b"\xfftOc\0\0\0\2" + struct.pack(">256I", *fanout) + b"".join(oids) + numbers
    return (index := index + checksum) + sha1(index, usedforsecurity=False).digest()


def read_index(index: bytes) -> dict[bytes, tuple[int, int]]:
    """Read the offsets and CRC-32s in an index of version 2, of a pack of less than 2 GiB."""
    count = int.from_bytes(index[1028:1032])
    body = struct.Struct(f">{count * 20}s{count}I{count}I")
    oids, *numbers = body.unpack_from(index, 1032)
    assert len(index) == 1032 + body.size + 40
    places = zip(numbers[count:], numbers[:count], strict=True)
    return {oids[20 * at : 20 * at + 20]: place for at, place in enumerate(places)}


def ids(contents: Iterable[bytes]) -> set[bytes]:
    """Return the ids of blobs."""
    return {object_id("blob", content) for content in contents}


def _header(kind: int, size: int) -> bytes:
    """Return the header of an object's compressed data; `size` is the inflated one."""
    byte = kind << 4 | size & 15
    size >>= 4
    header = bytearray()
    while size:
        header.append(byte | 0x80)
        byte = size & 0x7F
        size >>= 7
    header.append(byte)
    return bytes(header)
