"""`B3SUMS` in directories that are named: digests of the metadata, as `b3sum --check` reads them.

As with all of its kind, a line begins with a backslash if its name holds a backslash or a newline,
which are escaped.  Names that are no UTF-8 or hold a carriage return are left out, which `b3sum`
takes from no list or not from each; so are files without a digest.
"""

from collections.abc import Iterator

from huai_schema.entries import File
from huai_schema.layout.snapshot import decode_listing
from huai_schema.paths import RelPath, basename, join
from huai_server.export.source import Source, Wanted

_NAME = b"B3SUMS"


def paths(wanted: Wanted) -> tuple[RelPath, ...]:
    """One in each directory."""
    return tuple(join(directory, _NAME) for directory in wanted.sums)


def texts(source: Source, wanted: Wanted) -> Iterator[tuple[RelPath, Iterator[bytes]]]:
    """One in each directory that the commit has."""
    for directory in wanted.sums:
        listing = source.snapshot.listing(directory)
        if listing is not None:
            entries = (each for each in decode_listing(listing) if isinstance(each, File))
            yield join(directory, _NAME), _lines(source, entries)


def _lines(source: Source, files: Iterator[File]) -> Iterator[bytes]:
    for file in files:
        name = basename(file.path)
        if file.digest and file.path not in source.exported.files and _is_text(name):
            escaped = name.replace(b"\\", rb"\\").replace(b"\n", rb"\n")
            mark = b"\\" if escaped != name else b""
            yield mark + file.digest.hex().encode() + b"  " + escaped + b"\n"


def _is_text(name: bytes) -> bool:
    try:
        return not {"\ufffd", "\r"} & set(name.decode())
    except UnicodeDecodeError:
        return False
