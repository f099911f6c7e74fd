"""The history of a module's runs: an append-only file of JSON lines, of limited size.

A run that holds the module's lock appends to it after the state is written, and so does a `verify`,
which may end at any time.  It is for people, and no decision depends on it: a line that is lost or
torn is skipped, and a run does not fail if the file cannot be written.
Rules to keep: a poll that finds nothing new writes nothing, and equal failures in a row are one
line, so the file grows with events and not with time.  A run that is about to change something
writes a line, which the one of its end replaces, so that a killed run is seen.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from huai_client.state.run_record import REASON_MOST, RunRecord
from huai_client.state.state import StateError

_SIZE_MOST = 256 << 10
"""Bytes; a larger file is renamed, and replaces the one renamed before."""
_LINE_MOST = 4096
_OLD = ".1"
_decoder = msgspec.json.Decoder(RunRecord)


def append(path: Path, record: RunRecord) -> None:
    """Add a run; one that failed like the last one is counted in the same line."""
    record = msgspec.structs.replace(record, reason=record.reason[:REASON_MOST])
    with suppress(OSError):
        if path.exists() and path.stat().st_size > _SIZE_MOST:
            path.replace(_older(path))
        _append(path, record)


def _append(path: Path, record: RunRecord) -> None:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        # A `verify` may end while another run does.
        fcntl.flock(handle, fcntl.LOCK_EX)
        whole, newest = _tail(handle)
        if newest and newest[-1].record.begins(record):
            whole = newest.pop().start
        if newest and newest[-1].record.alike(record):
            whole, record = newest[-1].start, newest[-1].record.again(record)
        line = msgspec.json.encode(record) + b"\n"
        os.pwrite(handle, line, whole)
        os.ftruncate(handle, whole + len(line))
        os.fdatasync(handle)
    finally:
        os.close(handle)


class _Line(NamedTuple):
    start: int
    """Where it stands in the file."""
    record: RunRecord


def _tail(handle: int) -> tuple[int, list[_Line]]:
    """Where the last whole line ends, and the last lines that can be read, at least two."""
    size = os.fstat(handle).st_size
    position = max(0, size - 3 * _LINE_MOST)
    found: list[_Line] = []
    for line in os.pread(handle, size - position, position).splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break
        record = _decode(line)
        if record is not None:
            found.append(_Line(position, record))
        position += len(line)
    return position, found


def last(path: Path) -> RunRecord | None:
    """The newest run, without reading the others; None: there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        newest = _tail(handle)[1]
    finally:
        os.close(handle)
    return newest[-1].record if newest else None


def read(path: Path) -> list[RunRecord]:
    """All runs, newest first; raises `StateError` for a file that cannot be read."""
    found: list[RunRecord] = []
    for each in (_older(path), path):
        try:
            lines = each.read_bytes().split(b"\n")[:-1]  # what follows the last is cut
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StateError(
                f"{each}: {error.strerror}", hint="run as the user that the state belongs to"
            ) from error
        found += (record for line in lines if (record := _decode(line)) is not None)
    found.reverse()
    return [record for number, record in enumerate(found) if not _is_told(record, found[:number])]


def _is_told(record: RunRecord, later: list[RunRecord]) -> bool:
    """Whether the end of the same run is among `later`: a `verify` has ended in between."""
    return not record.ended and any(record.begins(each) for each in later)


def _older(path: Path) -> Path:
    return path.with_name(path.name + _OLD)


def _decode(line: bytes) -> RunRecord | None:
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
