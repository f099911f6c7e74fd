"""The record of delayed deletions: a file next to the state.

It is replaced as a whole, durably, before the state records the commit as applied; so it lists
every path that has to be deleted later, and perhaps some that no longer exist.  The first line
shows if anything is due, so that a poll reads no more than that.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from huai_client.state.delayed_deletion import DelayedDeletion
from huai_client.state.state import StateError, read_file, replace_durably
from huai_schema.codec.escaping import escape, unescape
from huai_schema.errors import FormatError
from huai_schema.paths import rel_path

_FIRST = re.compile(rb"huai-delayed 1 ([0-9]{1,18}) ([0-9]{1,18})\n")
_LINE = re.compile(rb"([0-9]{1,18})\t([df])\t([^\t\n]+)")
_FIRST_BYTES = 64


class DelayedHeader(Struct, frozen=True):
    """The first line of the record."""

    paths: int
    """The number of delayed deletions."""
    since: int
    """The time of the oldest one, seconds since the epoch."""

    def due(self, patience: int, now: int) -> bool:
        """Return True if the oldest is delayed for at least `patience` seconds at `now`."""
        return self.paths > 0 and self.since + patience <= now


def head(path: Path) -> DelayedHeader:
    """Return the first line of the record; zeros if the file is missing.

    Raises `StateError` if the line is malformed or cannot be read.
    """
    data = read_file(path, _FIRST_BYTES)
    return DelayedHeader(0, 0) if data is None else _head(path, data)


def load(path: Path) -> list[DelayedDeletion]:
    """Read the delayed deletions, none if the file is missing.

    Raises `StateError` if it is damaged or cannot be read.
    """
    data = read_file(path)
    if data is None:
        return []
    count = _head(path, data).paths
    lines = data.split(b"\n")[1:-1]
    try:
        if len(lines) != count or not data.endswith(b"\n"):
            raise FormatError("truncated")
        return [_decode(line) for line in lines]
    except FormatError as error:
        raise _damaged(path, error.message) from error


def save(path: Path, waiting: Iterable[DelayedDeletion], *, now: int) -> None:
    """Replace the record in one durable step; a `since` of 0 becomes `now` (s since the epoch).

    Makes no file for no deletion.  Raises `StateError` if it cannot be written.
    """
    stamped = [deletion._replace(since=deletion.since or now) for deletion in waiting]
    if not stamped and not path.exists():
        return
    since = min((deletion.since for deletion in stamped), default=0)
    lines = [b"huai-delayed 1 %d %d\n" % (len(stamped), since)]
    for deletion in stamped:
        kind = b"d" if deletion.directory else b"f"
        lines.append(b"%d\t%b\t%b\n" % (deletion.since, kind, escape(deletion.path)))
    replace_durably(path, b"".join(lines))


def _head(path: Path, data: bytes) -> DelayedHeader:
    """Parse the first line of the file; raises `StateError` if it is malformed."""
    match = _FIRST.match(data)
    if match is None:
        raise _damaged(path, "the first line is wrong")
    return DelayedHeader(int(match[1]), int(match[2]))


def _decode(line: bytes) -> DelayedDeletion:
    """Parse a line of the file to a deletion; raises `FormatError` if it is malformed."""
    match = _LINE.fullmatch(line)
    if match is None:
        raise FormatError("a line is malformed")
    since, kind, text = match.groups()
    return DelayedDeletion(rel_path(unescape(text)), kind == b"d", int(since))


def _damaged(path: Path, reason: str) -> StateError:
    return StateError(
        f"{path}: not a record of this program ({reason})",
        hint="move it away, then run sync --adopt --delete-extraneous, which finds what is left",
    )
