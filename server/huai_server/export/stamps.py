"""Files that hold a moment, in seconds since the epoch.

- `lastupdate`: when the content changed last (Arch Linux).
- `lastsync`: when the mirror was looked at last (Arch Linux).
- `timestamp`: the same, for whoever probes mirrors: mirmon reads the first line of what its probe
  prints, mirrorbits the first word of the file that `TraceFileLocation` names.
"""

from collections.abc import Iterator

from huai_schema.paths import RelPath
from huai_server.export.source import Source, Wanted

_UPDATE, _SYNC, _STAMP = (RelPath(name) for name in (b"lastupdate", b"lastsync", b"timestamp"))


def arch_paths(_: Wanted) -> tuple[RelPath, ...]:
    """Those of Arch Linux."""
    return (_UPDATE, _SYNC)


def arch_texts(source: Source, wanted: Wanted) -> Iterator[tuple[RelPath, Iterator[bytes]]]:
    """Those of Arch Linux."""
    yield _UPDATE, _line(source.time)
    yield _SYNC, _line(source.stamp(wanted.heartbeat))


def probe_paths(_: Wanted) -> tuple[RelPath, ...]:
    """That of probes."""
    return (_STAMP,)


def probe_texts(source: Source, wanted: Wanted) -> Iterator[tuple[RelPath, Iterator[bytes]]]:
    """That of probes."""
    yield _STAMP, _line(source.stamp(wanted.heartbeat))


def _line(seconds: int) -> Iterator[bytes]:
    yield b"%d\n" % seconds
