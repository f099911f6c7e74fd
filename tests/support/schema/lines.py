"""Lines, written from FORMAT.md: the oracle of the engine's."""

from huai_schema.codec.escaping import escape
from huai_schema.entries import (
    DIRECTORY_MODE,
    FILE_MODE,
    ROOT_OWNER,
    SYMLINK_MODE,
    Directory,
    File,
    Symlink,
)
from huai_schema.paths import basename, parent

_NANOSECONDS = 1_000_000_000


def encode_leaf(entry: File | Symlink) -> bytes:
    """The line of a file or symlink, newline included; the digest is not part of it."""
    usual, value = FILE_MODE, b"%d" % entry.size if isinstance(entry, File) else b""
    if isinstance(entry, Symlink):
        usual, value = SYMLINK_MODE, b">" + escape(entry.target)
    fields = [escape(basename(entry.path)), value, encode_mtime(entry.mtime)]
    if entry.mode != usual:
        fields.append(b"m%o" % entry.mode)
    if entry.owner != ROOT_OWNER:
        fields.append(b"u" + escape(entry.owner))
    if entry.group != ROOT_OWNER:
        fields.append(b"g" + escape(entry.group))
    link = entry.link if isinstance(entry, File) else None
    return b"\t".join(fields) + (b"" if link is None else link_field(entry.path, link)) + b"\n"


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


def _encode_fields(mode: int, default: int, owner: bytes, group: bytes) -> bytes:
    fields = b"" if mode == default else b"\tm%o" % mode
    if owner != ROOT_OWNER:
        fields += b"\tu" + escape(owner)
    if group != ROOT_OWNER:
        fields += b"\tg" + escape(group)
    return fields


def _relative(path: bytes, start: bytes) -> bytes:
    """`path` as seen from the directory `start`."""
    old_parts = start.split(b"/") if start else []
    new_parts = path.split(b"/")
    common = 0
    while (
        common < min(len(old_parts), len(new_parts) - 1) and old_parts[common] == new_parts[common]
    ):
        common += 1
    return b"/".join([b".."] * (len(old_parts) - common) + new_parts[common:])
