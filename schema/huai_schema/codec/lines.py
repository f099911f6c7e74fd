"""Entries to lines and back (FORMAT.md, "Lines").

Strict: a line decodes only if it is the one canonical spelling of its entry.  A maintainer
has to keep `_LEAF` and the encoders in step; the property tests hold them to it.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from huai_schema import limits
from huai_schema.codec.escaping import escape, unescape
from huai_schema.entries import (
    DIRECTORY_MODE,
    FILE_MODE,
    ROOT_OWNER,
    SYMLINK_MODE,
    Directory,
    File,
    Symlink,
)
from huai_schema.errors import FormatError
from huai_schema.paths import RelPath, check_name, parent, rel_path, show

_MTIME = rb"(0|-?[1-9][0-9]{0,11})(?:\.([0-9]{0,8}[1-9]))?"
_FIELDS = rb"((?:\t[^\x00-\x1f\x7f]+)*)"
_LEAF = re.compile(
    rb"([^\x00-\x1f\x7f/]+)\t(?:(0|[1-9][0-9]{0,18})|>([^\x00-\x1f\x7f]+))\t"
    + _MTIME
    + _FIELDS
    + rb"\n|"
)
"""The empty alternative stops a search at the first line that does not fit."""
_ATTRIBUTES = re.compile(_MTIME + _FIELDS)
_MODE = re.compile(rb"0|[1-7][0-7]{0,3}")
_NANOSECONDS = 1_000_000_000
_ORDER = b"mugh"
"""The known fields in their order; unknown ones come after them."""
_NO_DIGEST = bytes(limits.DIGEST_BYTES)


class _Fields(NamedTuple):
    mode: int
    owner: bytes
    group: bytes
    link: bytes | None


def encode_directory(entry: Directory) -> bytes:
    """The attribute fields of a directory, without its name."""
    fields = _encode_fields(entry.mode, DIRECTORY_MODE, entry.owner, entry.group)
    return encode_mtime(entry.mtime) + fields


def link_field(path: bytes, leader: bytes) -> bytes:
    """The field, its tab included, that makes `path` a hardlink to `leader`.

    The leader is named relative to the directory of `path`, so that a directory which
    moves with the whole group in it keeps its manifests.
    """
    return b"\th" + escape(_relative(leader, parent(path)))


def encode_mtime(nanoseconds: int) -> bytes:
    """Seconds, floored, and the rest as a decimal fraction without trailing zeros."""
    seconds, rest = divmod(nanoseconds, _NANOSECONDS)
    if not rest:
        return b"%d" % seconds
    return b"%d.%s" % (seconds, (b"%09d" % rest).rstrip(b"0"))


def decode_leaves(
    directory: RelPath, leaves: bytes, digests: bytes = b""
) -> Iterator[File | Symlink]:
    """The entries of a listing's leaves, checked to be canonical, sorted and unique."""
    _check_line_lengths(leaves, show(directory))
    position = files = 0
    previous = b""
    prefix = directory + b"/" if directory else b""
    for found in _LEAF.finditer(leaves):
        raw_name, size, target, seconds, fraction, fields = found.groups()
        if raw_name is None:
            break
        position = found.end()
        try:
            name = _decode_name(raw_name, previous)
            path = RelPath(prefix + name)
            if len(path) > limits.PATH_BYTES:
                raise FormatError(f"a path of more than {limits.PATH_BYTES} bytes")
            mtime = _decode_mtime(seconds, fraction)
            entry: File | Symlink
            if target is not None:
                entry = _symlink(path, unescape(target), mtime, fields)
            else:
                digest = digests[files * 32 : files * 32 + 32] or None
                entry = _file(path, int(size), mtime, fields, digest)
                files += 1
        except FormatError as error:
            raise error.within(_place(prefix, raw_name)) from None
        previous = name
        yield entry
    if position != len(leaves):
        line = leaves[position:].split(b"\n", 1)[0][:200]
        raise FormatError("not a canonical line", _place(prefix, line))
    if digests and len(digests) != files * limits.DIGEST_BYTES:
        raise FormatError("the digest column has not one digest for each file", show(directory))


def decode_directory(path: RelPath, attributes: bytes) -> Directory:
    """The directory whose attribute fields these are."""
    found = _ATTRIBUTES.fullmatch(attributes) if len(attributes) < limits.LINE_BYTES else None
    if found is None:
        raise FormatError("not canonical directory attributes", show(path))
    try:
        fields = _decode_fields(found[3], DIRECTORY_MODE)
        if fields.link is not None:
            raise FormatError("a directory cannot be a hardlink")
        mtime = _decode_mtime(found[1], found[2])
    except FormatError as error:
        raise error.within(show(path)) from None
    return Directory(path, mtime, fields.mode, fields.owner, fields.group)


def has_leaf(leaves: bytes, name: bytes) -> bool:
    """Whether a raw name stands in sorted `leaves`; looks at a few lines only."""
    low, high = 0, len(leaves)
    while low < high:
        middle = (low + high) // 2
        begin = max(leaves.rfind(b"\n", low, middle) + 1, low)
        found = unescape(leaves[begin : leaves.find(b"\t", begin)])
        if found == name:
            return True
        if found < name:
            low = leaves.find(b"\n", middle) + 1 or high
        else:
            high = begin
    return False


def count_files(leaves: bytes) -> int:
    """How many lines are regular files: only a symlink's line holds a tab and `>`."""
    return leaves.count(b"\n") - leaves.count(b"\t>")


def _check_line_lengths(text: bytes, place: str) -> None:
    """Before the pattern sees them: what it needs grows with the length of a line."""
    position = 0
    while len(text) - position > limits.LINE_BYTES:
        end = text.rfind(b"\n", position, position + limits.LINE_BYTES) + 1
        if not end:
            raise FormatError(f"a line of more than {limits.LINE_BYTES} bytes", place)
        position = end


def _decode_name(text: bytes, previous: bytes) -> bytes:
    """A raw name that comes after `previous`; the pattern has ruled out most bad ones."""
    name = unescape(text) if b"\\" in text else text
    if name <= previous:
        raise FormatError("names are not sorted or not unique")
    if len(name) > limits.NAME_BYTES or text[:1] in b".\\" or b"\0" in name:
        check_name(name)
    return name


def _file(path: RelPath, size: int, mtime: int, text: bytes, digest: bytes | None) -> File:
    if size > limits.SIZE_MAX:
        raise FormatError(f"a size of {size} bytes")
    if digest == _NO_DIGEST:
        digest = None
    if not text:
        return File(path, size, mtime, digest=digest)
    fields = _decode_fields(text, FILE_MODE)
    link = None if fields.link is None else _resolve(fields.link, path)
    return File(path, size, mtime, fields.mode, fields.owner, fields.group, link, digest)


def _symlink(path: RelPath, target: bytes, mtime: int, text: bytes) -> Symlink:
    if len(target) > limits.TARGET_BYTES or b"\0" in target:
        raise FormatError("a symlink's target is too long or holds NUL")
    fields = _decode_fields(text, SYMLINK_MODE)
    if fields.link is not None:
        raise FormatError("a symlink cannot be a hardlink")
    return Symlink(path, target, mtime, fields.mode, fields.owner, fields.group)


def _encode_fields(mode: int, default: int, owner: bytes, group: bytes) -> bytes:
    fields = b"" if mode == default else b"\tm%o" % mode
    if owner != ROOT_OWNER:
        fields += b"\tu" + escape(owner)
    if group != ROOT_OWNER:
        fields += b"\tg" + escape(group)
    return fields


def _decode_fields(text: bytes, default_mode: int) -> _Fields:
    mode, owner, group, link = default_mode, ROOT_OWNER, ROOT_OWNER, None
    rank = -1
    for field in text.split(b"\t")[1:]:
        key, value = field[:1], field[1:]
        if key == b"m":
            mode = _decode_mode(value, default_mode)
        elif key == b"u":
            owner = _decode_owner(value)
        elif key == b"g":
            group = _decode_owner(value)
        elif key == b"h":
            link = unescape(value)
        elif not key.islower():
            raise FormatError(f"a field this version must understand, and does not: {field[:40]!r}")
        place = _ORDER.find(key) % (len(_ORDER) + 1)
        if place < rank or place == rank < len(_ORDER):
            raise FormatError(f"fields are out of order or repeated: {text[:80]!r}")
        rank = place
    return _Fields(mode, owner, group, link)


def _decode_mode(value: bytes, default: int) -> int:
    mode = int(value, 8) if _MODE.fullmatch(value) else default
    if mode == default:
        raise FormatError(f"not a canonical mode: {value[:40]!r}")
    return mode


def _decode_owner(value: bytes) -> bytes:
    owner = unescape(value)
    if not owner or owner == ROOT_OWNER or len(owner) > limits.OWNER_BYTES or b"\0" in owner:
        raise FormatError(f"not a canonical owner: {value[:40]!r}")
    return owner


def _decode_mtime(seconds: bytes, fraction: bytes | None) -> int:
    value = int(seconds) * _NANOSECONDS
    if fraction is not None:
        value += int(fraction.ljust(9, b"0"))
    if not -limits.MTIME_MAX <= value <= limits.MTIME_MAX:
        raise FormatError(f"a time out of range: {seconds.decode()} s")
    return value


def _relative(path: bytes, start: bytes) -> bytes:
    """`path` as seen from the directory `start`."""
    here = start.split(b"/") if start else []
    there = path.split(b"/")
    common = 0
    while common < min(len(here), len(there) - 1) and here[common] == there[common]:
        common += 1
    return b"/".join([b".."] * (len(here) - common) + there[common:])


def _resolve(relative: bytes, path: RelPath) -> RelPath:
    """The leader that `relative` names, seen from the hardlink at `path`."""
    directory = parent(path)
    base, rest = directory, relative
    while rest.startswith(b"../"):
        if not base:
            raise FormatError("a hardlink leads out of the module")
        base, rest = parent(base), rest[3:]
    leader = rel_path(base + b"/" + rest if base else rest)
    if not leader or _relative(leader, directory) != relative or not _precedes(leader, path):
        raise FormatError(f"not a canonical hardlink: {relative[:200]!r}")
    return leader


def _precedes(leader: bytes, path: bytes) -> bool:
    """Whether one leaf comes before another in tree order: leaves, then subdirectories."""
    here, there = leader.split(b"/"), path.split(b"/")
    for index, (one, other) in enumerate(zip(here, there, strict=False)):
        last_one, last_other = index == len(here) - 1, index == len(there) - 1
        if last_one != last_other:
            return last_one and one != other
        if one != other:
            return one < other
    return False


def _place(prefix: bytes, text: bytes) -> str:
    """`text` is as it stands in its line: escaped, and perhaps not even canonical."""
    return show(prefix + text)
