"""The dialects: what each is called in server.toml and on the command line, and what it writes.

Rule: what a file holds follows from the described commit alone, and from what the administrator
wants: whoever adds a dialect may take nothing from a clock, a commit's id or the tree.  Lines of
which there is one for each entry are made in the engine.  Downstreams publish the files in the
order that `huai_client/plan/profiles/profiles.toml` gives their names.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from huai_native._native import Ls
from huai_schema.entries import File
from huai_schema.layout.snapshot import decode_listing
from huai_schema.paths import RelPath, basename, join
from huai_server.export import fedora, trace, tunasync
from huai_server.export.source import Source, Wanted

Texts: TypeAlias = Iterator[tuple[RelPath, Iterator[bytes]]]
"""Files below the folder of the export, each with its content in pieces, one after the other."""
_UPDATE, _SYNC, _STAMP = (RelPath(name) for name in (b"lastupdate", b"lastsync", b"timestamp"))
_LS = RelPath(b"ls-lR.gz")
_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 6
_SUMS = b"B3SUMS"


class Dialect(NamedTuple):
    """Some files that belong together."""

    paths: Callable[[Wanted], tuple[RelPath, ...]]
    """What it may write, below the folder of the export."""
    texts: Callable[[Source, Wanted], Texts]


def _arch_texts(source: Source, wanted: Wanted) -> Texts:
    """Arch Linux's: when the content changed last, and when the mirror was looked at last."""
    yield _UPDATE, _line(source.time)
    yield _SYNC, _line(source.stamp(wanted.heartbeat))


def _stamp_texts(source: Source, wanted: Wanted) -> Texts:
    """When the mirror was looked at last, for whoever probes mirrors.

    Mirmon reads the first line of what its probe prints, mirrorbits the first word of the file that
    `TraceFileLocation` names.
    """
    yield _STAMP, _line(source.stamp(wanted.heartbeat))


def _line(seconds: int) -> Iterator[bytes]:
    yield b"%d\n" % seconds


def _ls_texts(source: Source, _: Wanted) -> Texts:
    """What `ls -lR` says, as Debian's and GNU's mirrors have it."""
    yield _LS, _compressed(Ls(source.lent, source.own))


def _compressed(listing: Ls) -> Iterator[bytes]:
    """The bytes follow from the commit alone: gzip's header has neither a time nor a name."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    while part := listing.part():
        yield packer.compress(part)
    yield packer.flush()


def _sums_paths(wanted: Wanted) -> tuple[RelPath, ...]:
    return tuple(join(directory, _SUMS) for directory in wanted.sums)


def _sums_texts(source: Source, wanted: Wanted) -> Texts:
    """`B3SUMS` in each directory that is named: digests, as `b3sum --check` reads them.

    As with all of its kind, a line begins with a backslash if its name holds a backslash or a
    newline, which are escaped.  Names that are no UTF-8 or hold a carriage return are left out,
    which `b3sum` takes from no list or not from each; so are files without a digest.
    """
    for directory in wanted.sums:
        listing = source.snapshot.listing(directory)
        if listing is not None:
            entries = (each for each in decode_listing(listing) if isinstance(each, File))
            yield join(directory, _SUMS), _sums(source, entries)


def _sums(source: Source, files: Iterator[File]) -> Iterator[bytes]:
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


DIALECTS = {
    "trace": Dialect(trace.paths, trace.texts),
    "arch": Dialect(lambda _: (_UPDATE, _SYNC), _arch_texts),
    "timestamp": Dialect(lambda _: (_STAMP,), _stamp_texts),
    "tunasync": Dialect(tunasync.paths, tunasync.texts),
    "b3sums": Dialect(_sums_paths, _sums_texts),
    "ls-lR": Dialect(lambda _: (_LS,), _ls_texts),
}
"""In the order in which they are written."""
FEDORA = "fedora"
"""The one that is written last: it names the files of all others (`fedora.Lists`)."""
NAMES = (*DIALECTS, FEDORA)


def all_paths(wanted: Wanted) -> tuple[RelPath, ...]:
    """Everything that is to be written, below the folder of the export."""
    found: list[RelPath] = []
    for name in wanted.dialects:
        found += fedora.paths(wanted) if name == FEDORA else DIALECTS[name].paths(wanted)
    return tuple(found)
