"""The dialects by their names in server.toml and on the command line, and their files.

Rule: the content of a file depends on the described commit and on the `ExportRequest` only, and
never on a clock, a commit's id or the tree.  The engine makes the lines of which there is one for
each entry.  Downstreams publish the files in the order that
`huai_client/plan/profiles/profiles.toml` gives their names.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from huai_native._native import FileList
from huai_schema.entries import File
from huai_schema.layout.snapshot import decode_listing
from huai_schema.paths import RelPath, basename, join
from huai_server.export import fedora, trace, tunasync
from huai_server.export.source import ExportRequest, Source

Texts: TypeAlias = Iterator[tuple[RelPath, Iterator[bytes]]]
"""Files by path below the export's folder, each with its content in consecutive pieces."""
_UPDATE, _SYNC, _STAMP = (RelPath(name) for name in (b"lastupdate", b"lastsync", b"timestamp"))
_LS = RelPath(b"ls-lR.gz")
_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 6
_SUMS = b"B3SUMS"


class Dialect(NamedTuple):
    """A set of files in the format of another mirror program."""

    paths: Callable[[ExportRequest], tuple[RelPath, ...]]
    """Returns the paths of the files below the export's folder."""
    texts: Callable[[Source, ExportRequest], Texts]
    """Yields the files to write, each with its content."""


def _arch_texts(source: Source, request: ExportRequest) -> Texts:
    """Yield Arch Linux's files: the commit's time, and that of the last heartbeat after it."""
    yield _UPDATE, _time_line(source.time)
    yield _SYNC, _time_line(source.stamp(request.heartbeat))


def _stamp_texts(source: Source, request: ExportRequest) -> Texts:
    """Yield `timestamp`: the time of the commit, or of a later heartbeat, for probes of mirrors.

    Mirmon reads the first line of its probe's output, mirrorbits the first word of the file that
    `TraceFileLocation` names.
    """
    yield _STAMP, _time_line(source.stamp(request.heartbeat))


def _time_line(seconds: int) -> Iterator[bytes]:
    yield b"%d\n" % seconds


def _ls_texts(source: Source, _: ExportRequest) -> Texts:
    """Yield the output of `ls -lR`, compressed, as on Debian's and GNU's mirrors.

    The files that exports write are left out.
    """
    yield _LS, _compress(FileList(source.snapshot.arguments, source.left_out, "ls-lR"))


def _compress(listing: Iterable[bytes]) -> Iterator[bytes]:
    """Compress a listing reproducibly, with neither a time nor a name in gzip's header."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    for part in listing:
        yield packer.compress(part)
    yield packer.flush()


def _sums_paths(request: ExportRequest) -> tuple[RelPath, ...]:
    """Return the path of the `B3SUMS` of each directory of the request."""
    return tuple(join(directory, _SUMS) for directory in request.sums)


def _sums_texts(source: Source, request: ExportRequest) -> Texts:
    """Yield a `B3SUMS`, for `b3sum --check`, of each directory of the request in the commit.

    As in other checksum files, a backslash before a line marks a name with an escaped backslash or
    newline.  Leaves out files of exports, files without a digest, and names that are not UTF-8 or
    hold a carriage return, because `b3sum` does not accept them or not in each list.
    """
    for directory in request.sums:
        listing = source.snapshot.listing(directory)
        if listing is not None:
            entries = (each for each in decode_listing(listing) if isinstance(each, File))
            yield join(directory, _SUMS), _sum_lines(source, entries)


def _sum_lines(source: Source, files: Iterator[File]) -> Iterator[bytes]:
    """Yield lines of b3sum for files; leave out exported ones, missing digests, unusable names."""
    for file in files:
        name = basename(file.path)
        if file.digest and file.path not in source.exported.files and _is_text(name):
            escaped = name.replace(b"\\", rb"\\").replace(b"\n", rb"\n")
            mark = b"\\" if escaped != name else b""
            yield mark + file.digest.hex().encode() + b"  " + escaped + b"\n"


def _is_text(name: bytes) -> bool:
    """Return True if a name is UTF-8 that b3sum can read back."""
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
"""All dialects but Fedora's, in the order in which they are written."""
FEDORA = "fedora"
"""The dialect that is written last, because it lists the files of the others (`fedora.Lists`)."""
NAMES = (*DIALECTS, FEDORA)


def all_paths(request: ExportRequest) -> tuple[RelPath, ...]:
    """Return the paths of all files that an export writes below its folder."""
    paths: list[RelPath] = []
    for name in request.dialects:
        paths += fedora.paths(request) if name == FEDORA else DIALECTS[name].paths(request)
    return tuple(paths)
