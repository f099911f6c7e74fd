"""Debian's trace files: `project/trace/HOST`, and `_traces`, which lists them.

As ftpsync writes them: the first line is the output of `LC_ALL=POSIX date -u`, then come fields.
`Archive serial` is left out, because it is in the content of another file.  `_traces` has the names
in the order of their times, this mirror's last.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime

from huai_schema import __version__
from huai_schema.entries import File
from huai_schema.layout.snapshot import decode_listing
from huai_schema.paths import RelPath, basename, join
from huai_server.export.source import ExportRequest, Source

_FOLDER = RelPath(b"project/trace")
_LIST = join(_FOLDER, b"_traces")
_DISTS = RelPath(b"dists")


def paths(request: ExportRequest) -> tuple[RelPath, ...]:
    """Return the paths of the trace file and the list."""
    return (_trace_path(request), _LIST)


def texts(source: Source, request: ExportRequest) -> Iterator[tuple[RelPath, Iterator[bytes]]]:
    """Yield the trace file and the list of trace files."""
    yield _trace_path(request), _trace_lines(source, request)
    yield _LIST, _names_by_time(source, request)


def _trace_path(request: ExportRequest) -> RelPath:
    return join(_FOLDER, request.host.encode())


def _trace_lines(source: Source, request: ExportRequest) -> Iterator[bytes]:
    """Yield the content of a trace file, as Debian's mirrors have it, in one piece.

    Its lines have the dates, program, host, architectures (if any) and upstream.
    """
    when = datetime.fromtimestamp(source.stamp(request.heartbeat), UTC)
    started = datetime.fromtimestamp(source.time, UTC)
    moment, _, year = when.ctime().rpartition(" ")
    lines = [
        f"{moment} UTC {year}",
        f"Date: {format_datetime(when)}",
        f"Date-Started: {format_datetime(started)}",
        f"Creator: huai-server {__version__}",
        f"Running on host: {request.host}",
    ]
    architectures = _architectures(source)
    if architectures:
        lines.append(f"Architectures: {' '.join(architectures)}")
    lines.append(f"Upstream-mirror: {request.upstream or 'unknown'}")
    yield "".join(line + "\n" for line in lines).encode()


def _architectures(source: Source) -> list[str]:
    """Return the architectures with an index of packages or sources below `dists`, sorted."""
    names = set()
    for listing in source.snapshot.subtree(_DISTS):
        name = basename(listing.path)
        index = b"Sources." if name == b"source" else b"Packages."
        if name != b"source" and not name.startswith(b"binary-"):
            continue
        if any(line.startswith(index) for line in listing.leaves.splitlines()):
            names.add(name.removeprefix(b"binary-").decode("utf-8", "replace"))
    return sorted(name for name in names if name.isprintable())


def _names_by_time(source: Source, request: ExportRequest) -> Iterator[bytes]:
    """Yield the names of the trace files in the commit by time, and our own last, in one piece.

    Names that cannot be a host's are left out.
    """
    own = _trace_path(request)
    listing = source.snapshot.listing(_FOLDER)
    entries = decode_listing(listing) if listing else ()
    other_traces = sorted(
        (each.mtime, basename(each.path))
        for each in entries
        if isinstance(each, File) and each.path != own and _is_host(basename(each.path))
    )
    yield b"".join(name + b"\n" for name in (*(name for _, name in other_traces), basename(own)))


def _is_host(name: bytes) -> bool:
    """True if a trace file can be named after a host: printable ASCII, without `_` in front."""
    return not name.startswith(b"_") and name.isascii() and name.decode().isprintable()
