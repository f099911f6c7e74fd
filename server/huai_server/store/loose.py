"""Loose objects: files named by the id of their object (gitrepository-layout(5)).

A commit is written as one, and stays one until `maintain` packs it.
Rule: an object gets its name only when all of it is on the disk.
"""

import zlib
from pathlib import Path

from huai_program.durable import replace_file, sync_folder
from huai_schema.errors import FormatError
from huai_schema.git.objects import Kind, object_id
from huai_schema.limits import OBJECT_BYTES

UNFINISHED = "tmp_object_"
"""The prefix of files that a killed run left in `objects`."""
_KINDS: dict[bytes, Kind] = {b"blob": "blob", b"tree": "tree", b"commit": "commit"}
_HEADER_BYTES = 32


def read_loose(repository: Path, oid: bytes) -> tuple[Kind, bytes] | None:
    """Return kind and content of a loose object of the repository, or None if it is missing.

    Raises `FormatError` if it is damaged or too large.  The content is not compared with the id.
    """
    try:
        packed = _loose_path(repository, oid).read_bytes()
    except FileNotFoundError:
        return None
    inflater = zlib.decompressobj()
    try:
        content = inflater.decompress(packed, OBJECT_BYTES + _HEADER_BYTES)
    except zlib.error as error:
        raise FormatError(f"the object cannot be read: {error}", oid.hex()) from None
    if not inflater.eof:
        raise FormatError("the object cannot be read: it is truncated or too large", oid.hex())
    header, _, data = content.partition(b"\0")
    kind = _KINDS.get(header.partition(b" ")[0])
    if kind is None or content[: len(header) + 1] != _header(kind, data):
        raise FormatError("the object cannot be read: its header is wrong", oid.hex())
    return kind, data


def write_loose(repository: Path, kind: Kind, data: bytes) -> bytes:
    """Write an object with the content `data`, durably, also if it is stored; return its id."""
    oid = object_id(kind, data)
    path = _loose_path(repository, oid)
    if not path.parent.exists():
        path.parent.mkdir()
        sync_folder(path.parent.parent)
    unfinished = path.parent.with_name(UNFINISHED + path.name)
    unfinished.unlink(missing_ok=True)
    replace_file(path, zlib.compress(_header(kind, data) + data), unfinished, permissions=0o444)
    return oid


def _loose_path(repository: Path, oid: bytes) -> Path:
    name = oid.hex()
    return repository / "objects" / name[:2] / name[2:]


def _header(kind: Kind, data: bytes) -> bytes:
    return b"%s %d\0" % (kind.encode(), len(data))
