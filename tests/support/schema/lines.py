"""Lines of files and symlinks, written from FORMAT.md: the oracle of the engine's."""

from huai_schema.codec.escaping import escape
from huai_schema.codec.lines import encode_mtime, link_field
from huai_schema.entries import FILE_MODE, ROOT_OWNER, SYMLINK_MODE, File, Symlink
from huai_schema.paths import basename


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
