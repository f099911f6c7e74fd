"""The history of a module's runs: an append-only file of JSON lines, of limited size.

A run that holds the module's lock appends to it after the state is written, and so does a `verify`,
which may end at any time.  It is for people, and no decision depends on it: a lost or torn line is
skipped, and a run does not fail if the file cannot be written.
Rules to keep: a poll that finds nothing new writes nothing, and equal failures in a row are one
line, so the file grows with events and not with time.  A run that is about to change something
writes a line, which is replaced at its end, so that a killed run is visible.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, Self

import msgspec
from msgspec import Struct

from huai_client.state.state import read_file
from huai_schema.errors import ExitCode

REASON_MOST = 400
"""The length in characters to which a reason is cut."""

Kind = Literal["sync", "deletions", "verify", "repair", "undo"]
Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
"""A number; larger ones are refused, as they may be too large to show."""


class RunRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a run."""

    kind: str
    """A `Kind`, or a kind of a later version.

    `deletions`: nothing was new, and delayed deletions were due.
    """
    time: Number
    """The time at which the run began, seconds since the epoch."""
    seconds: float = 0.0
    code: Number = 0
    """The exit code."""
    reason: str = ""
    """The reason of a failure, or empty."""
    before: str = ""
    """The applied commit at the beginning, or empty."""
    commit: str = ""
    """The commit that the run brought the tree to, or tried to, or empty."""
    serial: Number = 0
    done: dict[str, Number] = {}
    """The number of steps by kind, without kinds that have no step."""
    fetched: Number = 0
    """The number of files to fetch."""
    received: Number = 0
    """The bytes received."""
    total_bytes: Number = 0
    """The bytes of all files of the module."""
    changed: bool = True
    """False if there was nothing to do."""
    differences: Number = 0
    """The number of paths that differ, found by `verify`."""
    content: bool = False
    """True if `verify` read every file."""
    times: Number = 1
    """The number of runs in a row that ended like this."""
    last: Number = 0
    """The time at which the last of several began; 0 for a single run."""
    process: Number = 0
    """The process id, which distinguishes runs of the same second."""
    ended: bool = True
    """False if the run has begun to change something, and its end is not recorded."""

    @property
    def succeeded(self) -> bool:
        """True if the run ended well."""
        return self.ended and self.code == ExitCode.OK

    @property
    def outcome(self) -> str:
        """The name of the exit code; `CUT` if the run did not end."""
        if not self.ended:
            return "CUT"
        return next((code.name for code in ExitCode if code == self.code), str(self.code))

    @property
    def until(self) -> int:
        """The time at which the last run of this record began."""
        return self.last or self.time

    def alike(self, other: Self) -> bool:
        """Return True if both are failures with the same kind, code, reason and commit."""
        mine = (self.kind, self.code, self.reason, self.before, self.commit)
        theirs = (other.kind, other.code, other.reason, other.before, other.commit)
        return self.ended and other.ended and not self.succeeded and mine == theirs

    def begins(self, later: Self) -> bool:
        """Return True if this is the beginning of a run, and `later` its end."""
        same = (self.time, self.process) == (later.time, later.process)
        return same and not self.ended

    def again(self, later: Self) -> Self:
        """Return this record with one more run, the equal failure `later`."""
        changes = {"times": self.times + later.times, "last": later.until}
        return msgspec.structs.replace(self, **changes)


_SIZE_MOST = 256 << 10
"""The size in bytes above which the file is renamed to its older copy."""
_LINE_MOST = 4096
_OLD = ".1"
_decoder = msgspec.json.Decoder(RunRecord)


def append(path: Path, record: RunRecord) -> None:
    """Write a run, in place of the line of its beginning or of an equal failure before it.

    A file above 256 KiB is renamed first, and becomes the older one.  An `OSError` is ignored.
    """
    record = msgspec.structs.replace(record, reason=record.reason[:REASON_MOST])
    with suppress(OSError):
        if path.exists() and path.stat().st_size > _SIZE_MOST:
            path.replace(_older(path))
        _append(path, record)


def _append(path: Path, record: RunRecord) -> None:
    """Append a record under a lock, durably; it may replace the last one, or be counted there."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        # A `verify` may end while another run does.
        fcntl.flock(handle, fcntl.LOCK_EX)
        end, newest = _tail(handle)
        if newest and newest[-1].record.begins(record):
            end = newest.pop().start
        if newest and newest[-1].record.alike(record):
            end, record = newest[-1].start, newest[-1].record.again(record)
        line = msgspec.json.encode(record) + b"\n"
        os.pwrite(handle, line, end)
        os.ftruncate(handle, end + len(line))
        os.fdatasync(handle)
    finally:
        os.close(handle)


class _Line(Struct, frozen=True):
    start: int
    """The offset in the file."""
    record: RunRecord


def _tail(handle: int) -> tuple[int, list[_Line]]:
    """Return the end of the last complete line, and at least two readable lines before it."""
    size = os.fstat(handle).st_size
    position = max(0, size - 3 * _LINE_MOST)
    lines: list[_Line] = []
    for line in os.pread(handle, size - position, position).splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break
        record = _decode(line)
        if record is not None:
            lines.append(_Line(position, record))
        position += len(line)
    return position, lines


def last(path: Path) -> RunRecord | None:
    """Return the newest run, without reading the others; None without one or if unreadable."""
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
    """Return all runs, of the older file too, newest first; none without files.

    Leaves out malformed lines, and beginnings of runs whose end is recorded.  Raises `StateError`
    if a file cannot be read.
    """
    records: list[RunRecord] = []
    for file in (_older(path), path):
        lines = (read_file(file) or b"").split(b"\n")[:-1]  # the last one is empty or torn
        records += (record for line in lines if (record := _decode(line)) is not None)
    records.reverse()
    return [
        record for number, record in enumerate(records) if not _has_end(record, records[:number])
    ]


def _has_end(record: RunRecord, later: list[RunRecord]) -> bool:
    """Return True if `later` has the end of the same run, after the end of a `verify`."""
    return not record.ended and any(record.begins(each) for each in later)


def _older(path: Path) -> Path:
    return path.with_name(path.name + _OLD)


def _decode(line: bytes) -> RunRecord | None:
    """Parse a line; None if it is malformed."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
