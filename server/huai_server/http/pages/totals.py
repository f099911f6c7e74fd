"""Sizes and numbers of files of directories, which commits do not state.

A page waits for them only briefly; a thread counts the rest for the next one.  Rule: time and
memory are bounded, whatever a commit holds.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from time import monotonic, sleep
from typing import NamedTuple

from huai_native._native import SubtreeTotals
from huai_schema.entries import Directory, Entry
from huai_schema.errors import HuaiError
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath

_KEPT = 500_000
"""The most sums that are kept, about 50 MB: those of directories with many entries below them."""
_WAIT_SECONDS, _COUNT_SECONDS = 0.01, 3.0
_PAUSE_SECONDS = 0.001


class DirectoryTotals(NamedTuple):
    """The files below a directory, at any depth."""

    files: int
    bytes: int
    """A hardlink group counts once for each name."""


Totals = Mapping[RelPath, DirectoryTotals]


class TotalsCounter:
    """Counts what is below directories, of all modules."""

    def __init__(self, seconds: float = _WAIT_SECONDS) -> None:
        """A page waits for so many seconds."""
        self._seconds = seconds
        self._sums = SubtreeTotals(_KEPT)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="totals")
        self._counting = Lock()

    def read(self, snapshot: Snapshot, entries: Iterable[Entry]) -> Totals:
        """Return the totals of those directories among `entries` that are counted by now.

        Others are counted for later calls, those of one call at a time; damaged ones have none.
        """
        paths = [each.path for each in entries if isinstance(each, Directory)]
        try:
            sums = snapshot.totals(self._sums, paths, self._seconds)
        except HuaiError:
            return {}
        if None in sums and self._counting.acquire(blocking=False):
            self._pool.submit(self._count, snapshot, paths)
        counted = ((path, each) for path, each in zip(paths, sums, strict=True) if each)
        return {path: DirectoryTotals(files, size) for path, (files, _, size) in counted}

    def _count(self, snapshot: Snapshot, paths: list[RelPath]) -> None:
        """Count what is below `paths`, in short steps, between which pages read what is counted."""
        end = monotonic() + _COUNT_SECONDS
        try:
            while monotonic() < end and None in snapshot.totals(self._sums, paths, _WAIT_SECONDS):
                sleep(_PAUSE_SECONDS)
        finally:
            self._counting.release()
