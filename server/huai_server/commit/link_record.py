"""The record of hardlink groups: the names of each file (`native/tree/src/scan/linked.rs`).

A snapshot records the leader of each link, but does not mark leaders.  A commit by lists must know
them: where a leader changes, so do the lines of the others.  The record may have outdated pairs;
code that changes it must make sure that no pair of the newest commit is missing.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from huai_program.durable import open_new, sync_folder
from huai_schema.codec.escaping import unescape

_LONGEST = 1 << 16
"""The longest line, in bytes: every byte of two paths escaped."""


class LinkRecord:
    """The record of one module, while a commit writes it.

    After `add`, `replace` or `abort` must be called.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unfinished = path.with_name(path.name + ".new")
        self._file: BinaryIO | None = None

    def add(self, pairs: bytes) -> None:
        """Write groups of a whole scan to a new file, which `replace` makes the record.

        `pairs` are lines of leader, tab and member, both escaped.
        """
        if not pairs:
            return
        if self._file is None:
            self._file = open_new(self._unfinished)
        self._file.write(pairs)

    def pairs(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the leader and the member of each pair that was added."""
        if self._file is not None:
            self._file.flush()
            with self._unfinished.open("rb") as file:
                for line in file:
                    leader, _, member = line[:-1].partition(b"\t")
                    yield unescape(leader), unescape(member)

    def replace(self) -> None:
        """Make what was added the record, durably; delete the record if nothing was added."""
        if self._file is None:
            self._path.unlink(missing_ok=True)
        else:
            with self._file as file:
                _flush(file)
            self._unfinished.rename(self._path)
        sync_folder(self._path.parent)

    def extend(self, pairs: bytes) -> None:
        """Append the groups that a commit by lists found to the record, durably."""
        if pairs:
            with open(self._path, "a+b", opener=_open_no_follow) as file:
                _drop_cut_line(file)
                file.write(pairs)
                _flush(file)

    def abort(self) -> None:
        """Delete what was added; the record stays."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._unfinished.unlink(missing_ok=True)


def _open_no_follow(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def _drop_cut_line(file: BinaryIO) -> None:
    """Remove an incomplete line of a killed run or a full disk, which would corrupt the next."""
    begin = max(0, file.seek(0, os.SEEK_END) - _LONGEST)
    file.seek(begin)
    end = file.read()
    if end and not end.endswith(b"\n"):
        file.truncate(begin + end.rfind(b"\n") + 1)


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
