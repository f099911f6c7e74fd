"""The layout of FORMAT.md once more, naive and slow, written from that page alone.

It shares no code with `huai_schema` (entries are read by their attributes only), so that
where both agree, page and program agree.
"""

import hashlib
import posixpath
import zlib
from collections.abc import Iterable
from typing import NamedTuple

from huai_schema.entries import Directory, Entry, File, Symlink


class Node:
    def __init__(self, entry: Directory) -> None:
        self.entry = entry
        self.leaves: list[File | Symlink] = []
        self.subdirectories: list[Node] = []

    def entries(self) -> int:
        return 1 + len(self.leaves) + sum(below.entries() for below in self.subdirectories)


class Line(NamedTuple):
    text: bytes
    digest: bytes | None
    """None: not a file line."""


class Unit(NamedTuple):
    start: bytes
    lines: list[Line]


def reference(entries: Iterable[Entry]) -> tuple[bytes, dict[bytes, tuple[str, bytes]]]:
    """The id of the root's tree, and all objects."""
    everything = list(entries)
    for entry in everything:
        if b".~tmp~" in entry.path.lower().split(b"/"):
            raise ValueError(entry.path)  # reserved: a writer leaves it out
    nodes = {entry.path: Node(entry) for entry in everything if isinstance(entry, Directory)}
    for entry in sorted(everything, key=lambda each: posixpath.basename(each.path)):
        above = nodes[posixpath.dirname(entry.path)]  # type: ignore[index]
        if not isinstance(entry, Directory):
            above.leaves.append(entry)
        elif entry.path:
            above.subdirectories.append(nodes[entry.path])
    objects: dict[bytes, tuple[str, bytes]] = {}
    return own_directory(nodes[b""], objects), objects  # type: ignore[index]


def add_object(objects: dict[bytes, tuple[str, bytes]], kind: str, data: bytes) -> bytes:
    oid = hashlib.sha1(f"{kind} {len(data)}\0".encode() + data).digest()  # noqa: S324
    objects[oid] = kind, data
    return oid


def put_tree(
    objects: dict[bytes, tuple[str, bytes]], items: dict[bytes, tuple[str, bytes]]
) -> bytes:
    data = b""
    for name in sorted(items, key=lambda each: each + b"/" * (items[each][0] == "tree")):
        kind, oid = items[name]
        data += (b"40000 " if kind == "tree" else b"100644 ") + name + b"\0" + oid
    return add_object(objects, "tree", data)


def own_directory(node: Node, objects: dict[bytes, tuple[str, bytes]]) -> bytes:
    units = [Unit(b"", [Line(b"./\t" + attributes(node.entry), None)])]
    items: dict[bytes, tuple[str, bytes]] = {}
    units += [Unit(spell(posixpath.basename(leaf.path)), [leaf_line(leaf)]) for leaf in node.leaves]
    for below in node.subdirectories:
        name = posixpath.basename(below.entry.path)
        if below.entries() <= 128:
            units.append(Unit(spell(name) + b"/", inlined(below, spell(name))))
        else:
            items[b"=" + name] = "tree", own_directory(below, objects)
    pieces = {b"": [line for unit in units for line in unit.lines]}
    if len(pieces[b""]) > 256:
        pieces = cut(units)
    first = pieces.pop(b"")
    items[b"m"] = "blob", add_object(objects, "blob", text(first))
    if any(column(first)):
        items[b"d"] = "blob", add_object(objects, "blob", column(first))
    if pieces:
        texts = {key: add_object(objects, "blob", text(lines)) for key, lines in pieces.items()}
        columns = {key: column(lines) for key, lines in pieces.items() if any(column(lines))}
        items[b"p"] = "tree", radix(texts, objects, 0)
        if columns:
            ids = {key + b".d": add_object(objects, "blob", data) for key, data in columns.items()}
            items[b"q"] = "tree", radix(ids, objects, 0)
    return put_tree(objects, items)


def cut(units: list[Unit]) -> dict[bytes, list[Line]]:
    pieces: dict[bytes, list[Line]] = {}
    current: list[Line] = []
    size = 0
    for unit in units:
        key = piece_key(unit.start) if unit.start else b""
        by_name = zlib.crc32(unit.start) % 128 < len(unit.lines)
        own = len(text(unit.lines))
        by_size = len(current) + len(unit.lines) > 2048 or size + own > 1 << 20
        if not pieces or ((by_name or by_size) and key not in pieces):
            pieces[key] = current = []
            size = 0
        current += unit.lines
        size += own
    return pieces


def piece_key(start: bytes) -> bytes:
    return hashlib.sha256(start).hexdigest()[:16].encode()


def radix(items: dict[bytes, bytes], objects: dict[bytes, tuple[str, bytes]], depth: int) -> bytes:
    if len(items) <= 64:
        return put_tree(objects, {key: ("blob", oid) for key, oid in items.items()})
    split: dict[bytes, dict[bytes, bytes]] = {}
    for key, oid in items.items():
        split.setdefault(key[depth : depth + 1], {})[key] = oid
    return put_tree(
        objects, {digit: ("tree", radix(part, objects, depth + 1)) for digit, part in split.items()}
    )


def inlined(node: Node, path: bytes) -> list[Line]:
    lines = [Line(path + b"/\t" + attributes(node.entry), None), *map(leaf_line, node.leaves)]
    for below in node.subdirectories:
        lines += inlined(below, path + b"/" + spell(posixpath.basename(below.entry.path)))
    return lines


def text(lines: list[Line]) -> bytes:
    return b"".join(line.text + b"\n" for line in lines)


def column(lines: list[Line]) -> bytes:
    return b"".join(line.digest for line in lines if line.digest is not None)


def leaf_line(leaf: File | Symlink) -> Line:
    name = spell(posixpath.basename(leaf.path))
    if isinstance(leaf, Symlink):
        value, digest, mode = b">" + spell(leaf.target), None, 0o777
    else:
        value, digest, mode = b"%d" % leaf.size, leaf.digest or b"\0" * 32, 0o644
    line = b"\t".join((name, value, time(leaf.mtime))) + fields(leaf, mode)
    if isinstance(leaf, File) and leaf.link is not None:
        target = posixpath.relpath(b"/" + leaf.link, b"/" + posixpath.dirname(leaf.path))
        line += b"\th" + spell(target)
    return Line(line, digest)


def attributes(entry: Directory) -> bytes:
    return time(entry.mtime) + fields(entry, 0o755)


def fields(entry: Entry, mode: int) -> bytes:
    spelled = b"" if entry.mode == mode else b"\tm" + f"{entry.mode:o}".encode()
    spelled += b"" if entry.owner == b"root" else b"\tu" + spell(entry.owner)
    return spelled + (b"" if entry.group == b"root" else b"\tg" + spell(entry.group))


def time(nanoseconds: int) -> bytes:
    seconds = nanoseconds // 10**9
    rest = f"{nanoseconds - seconds * 10**9:09}".rstrip("0")
    return f"{seconds}.{rest}".rstrip(".").encode()


def spell(raw: bytes) -> bytes:
    spelled = b""
    for byte in raw:
        special = byte < 0x20 or byte in (0x7F, 0x5C)
        spelled += f"\\x{byte:02x}".encode() if special else bytes([byte])
    return spelled
