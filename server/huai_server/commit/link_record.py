"""The record of hardlink groups: which names belong together (`native/tree/src/scan/linked.rs`).

A snapshot says of each link what leads its group, and of no leader that it leads one.  A commit by
lists has to know that: where a leader changes, so do the lines of the others.  The record may hold
pairs that are no longer true; a maintainer has to see to it that none of the newest commit is
missing.
"""

import os
from pathlib import Path
from typing import BinaryIO

from huai_program.durable import open_new, sync_folder

_LONGEST = 1 << 16
"""Bytes of a line: every byte of two paths escaped."""


class LinkRecord:
    """The record of one module, while a commit writes it."""

    def __init__(self, path: Path) -> None:
        """Nothing is written before the first pair comes."""
        self._path = path
        self._unfinished = path.with_name(path.name + ".new")
        self._file: BinaryIO | None = None

    def add(self, pairs: bytes) -> None:
        """Some more of the groups of a whole scan."""
        if not pairs:
            return
        if self._file is None:
            self._file = open_new(self._unfinished)
        self._file.write(pairs)

    def replace(self) -> None:
        """The scan is over: what it found is all that there is."""
        if self._file is None:
            self._path.unlink(missing_ok=True)
        else:
            _close(self._file)
            self._unfinished.rename(self._path)
        sync_folder(self._path.parent)

    def extend(self, pairs: bytes) -> None:
        """What a commit by lists found, beside what is recorded."""
        if pairs:
            with open(self._path, "a+b", opener=_no_link) as file:
                _drop_cut_line(file)
                file.write(pairs)
                _flush(file)

    def abort(self) -> None:
        """Forget what was added."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._unfinished.unlink(missing_ok=True)


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def _close(file: BinaryIO) -> None:
    with file:
        _flush(file)


def _drop_cut_line(file: BinaryIO) -> None:
    """What a killed run or a full disk left of a line would become part of the next one."""
    begin = max(0, file.seek(0, os.SEEK_END) - _LONGEST)
    file.seek(begin)
    end = file.read()
    if end and not end.endswith(b"\n"):
        file.truncate(begin + end.rfind(b"\n") + 1)


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
