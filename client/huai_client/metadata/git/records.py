"""Taking a pack apart into records: whole objects, and deltas that name their base.

Pure: works on bytes or on a mapped file (gitformat-pack(5)).  Rule: nothing in a pack is
believed; sizes are checked against limits before, and against the data after inflating.
"""

import zlib
from collections.abc import Iterator
from hashlib import sha1
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from huai_client.metadata.git.limits import OBJECTS, Work
from huai_schema.errors import FormatError
from huai_schema.git.objects import OID_BYTES, Kind
from huai_schema.git.packfile import CHECKSUM_BYTES, HEADER_BYTES, KIND_CODES, pack_header
from huai_schema.limits import OBJECT_BYTES

if TYPE_CHECKING:
    from mmap import mmap

PackBytes: TypeAlias = "bytes | mmap"
KINDS: dict[int, Kind] = {code: kind for kind, code in KIND_CODES.items()}
_OFFSET_DELTA, _NAMED_DELTA = 6, 7
_SHIFT_MAX = 63
_RECORD_BYTES = 9
"""No record is shorter: a byte of header, and zlib's shortest stream."""
_FEED_BYTES = 1 << 20
_SLACK_BYTES = 64
"""What zlib may add to a short text that it cannot compress."""


class PackRecord(NamedTuple):
    """One object of a pack, as it stands there."""

    offset: int
    data: int
    """Where the compressed bytes begin."""
    size: int
    """Inflated; of the delta itself if it is one."""
    kind: Kind | None
    """None for a delta."""
    base: int | bytes
    """Of a delta: the offset of an earlier record, or an object's id."""
    crc: int


def check_pack(pack: PackBytes) -> int:
    """How many records there are, in a pack whose header and checksum are right."""
    body = len(pack) - CHECKSUM_BYTES
    if body < HEADER_BYTES:
        raise FormatError("no pack, or less than one", "the upstream's reply")
    count = int.from_bytes(pack[8:HEADER_BYTES])
    if pack[:HEADER_BYTES] != pack_header(count):
        raise FormatError("not a pack of version 2", "the upstream's reply")
    if count > min(OBJECTS, (body - HEADER_BYTES) // _RECORD_BYTES):
        raise FormatError(f"a pack cannot hold {count} objects", "the upstream's reply")
    digest = sha1(usedforsecurity=False)
    for start in range(0, body, _FEED_BYTES):
        digest.update(pack[start : min(start + _FEED_BYTES, body)])
    if digest.digest() != pack[body:]:
        raise FormatError("the pack's checksum is wrong", "the upstream's reply")
    return count


def scan_pack(pack: PackBytes, count: int, work: Work) -> Iterator[tuple[PackRecord, bytes]]:
    """Every record with its inflated bytes; they fill the pack to the last byte."""
    end = len(pack) - CHECKSUM_BYTES
    at, starts = HEADER_BYTES, set[int]()
    for _ in range(count):
        try:
            code, size, data = _header(pack, at)
            kind, base, data = _origin(pack, at, code, data)
        except IndexError:
            raise FormatError("an object without an end", _place(at)) from None
        if isinstance(base, int) and kind is None and base not in starts:
            raise FormatError("a delta against a place where no object begins", _place(at))
        if size > OBJECT_BYTES:
            reason = f"an object of {size} bytes; {OBJECT_BYTES} are the limit"
            raise FormatError(reason, _place(at))
        work.spend(size)
        content, after = _inflate(pack, data, size, end)
        starts.add(at)
        yield PackRecord(at, data, size, kind, base, zlib.crc32(pack[at:after])), content
        at = after
    if at != end:
        raise FormatError("a pack with more bytes than objects", _place(at))


def inflate(pack: PackBytes, record: PackRecord, work: Work) -> bytes:
    """Once more what `scan_pack` gave with `record`."""
    work.spend(record.size)
    return _inflate(pack, record.data, record.size, len(pack) - CHECKSUM_BYTES)[0]


def _place(offset: int) -> str:
    return f"byte {offset} of the pack"


def _header(pack: PackBytes, at: int) -> tuple[int, int, int]:
    """The record's type, its inflated size, and where its header ends."""
    byte = pack[at]
    code, size, shift = byte >> 4 & 7, byte & 15, 4
    while byte & 0x80 and shift < _SHIFT_MAX:
        at += 1
        byte = pack[at]
        size |= (byte & 0x7F) << shift
        shift += 7
    return code, size, at + 1


def _origin(
    pack: PackBytes, start: int, code: int, at: int
) -> tuple[Kind | None, int | bytes, int]:
    """What a record is, what it is based on, and where its data begin."""
    if code in KINDS:
        return KINDS[code], 0, at
    if code == _NAMED_DELTA:
        return None, pack[at : at + OID_BYTES], at + OID_BYTES
    if code != _OFFSET_DELTA:
        raise FormatError("something else than a commit, a tree or a blob", _place(start))
    byte = pack[at]
    distance = byte & 0x7F
    while byte & 0x80 and distance < start:
        at += 1
        byte = pack[at]
        distance = distance + 1 << 7 | byte & 0x7F
    return None, start - distance, at + 1


def _inflate(pack: PackBytes, at: int, size: int, end: int) -> tuple[bytes, int]:
    """The inflated bytes, exactly `size`, and where their stream ends."""
    stream = zlib.decompressobj()
    # A byte more than is right: zlib looks for the end of its stream only with room to write.
    room, parts = size + 1, list[bytes]()
    upto = min(end, at + min(size + _SLACK_BYTES, _FEED_BYTES))
    try:
        made = stream.decompress(pack[at:upto], room)
        while not stream.eof and len(made) < room and upto < end:
            parts.append(made)
            room -= len(made)
            fed, upto = upto, min(end, upto + _FEED_BYTES)
            made = stream.decompress(pack[fed:upto], room)
    except zlib.error as error:
        raise FormatError(f"compressed bytes are damaged ({error})", _place(at)) from None
    if not stream.eof or len(made) != room - 1:
        raise FormatError("an object of another size than its header says", _place(at))
    return b"".join((*parts, made)) if parts else made, upto - len(stream.unused_data)
