"""Mount points: a file system that came or went must not be taken for deleted files.

Filters the output of a scan.  If a directory had entries in the last commit and has none of them
now, because another file system is mounted over it or is not mounted any more, it is passed on as
one that could not be read, so that its old entries stay.  A file lists the mount points of the
last commit, which the metadata do not say; without that file a missing mount is not noticed.
"""

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from huai_native._native import Run
from huai_program.durable import replace_file
from huai_program.packs import TEMPORARY
from huai_schema.codec.escaping import escape, unescape
from huai_schema.errors import FormatError
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, basename, parent
from huai_server.scan.types import Scanned, ScannedDirectory, Unreadable

NOT_ENTERED = "another file system is mounted there, which is not entered"
MOUNTED_OVER = "another file system is mounted there, and nothing of what was there is in it"
NOT_MOUNTED = "the file system that was mounted there is not, and nothing of what it held is there"


class Mounts:
    """Watches the mount points of one scan."""

    def __init__(
        self, root: Path, record: Path, past: Snapshot | None, *, enter: bool, accept: bool
    ) -> None:
        """`record` is the file that lists mount points; `enter`: the scan reads what is mounted.

        `accept`: take every directory as it is now.
        """
        self._root = os.fsencode(root)
        self._record = record
        self._past = past
        self._enter = enter
        self._accept = accept
        self._before = read_mounts(record)
        self._now: set[bytes] = set()
        self._above: list[tuple[RelPath, int]] = []

    @property
    def watched(self) -> Collection[bytes]:
        """Paths that have to come one by one: the mount points of the last commit."""
        return self._before

    def guard(self, scanned: Iterable[ScannedDirectory | Unreadable | Run]) -> Scanned:
        """The same sequence, but for directories whose old entries have to stay."""
        kept: RelPath | None = None
        for item in scanned:
            if isinstance(item, Run):  # all on the root's file system, as before
                yield item
                continue
            path = item.path if isinstance(item, Unreadable) else item.listing.path
            if kept is not None and _is_within(path, kept):
                continue
            kept = None
            if isinstance(item, ScannedDirectory) and item.goes_on:
                yield item
                continue
            found = item if isinstance(item, Unreadable) else self._judge(item)
            if isinstance(found, Unreadable):
                self._now |= {each for each in self._before if _is_within(each, path)}
                kept = path
            yield found

    def write(self) -> None:
        """Record what was seen, for the next commit."""
        if self._now == self._before:
            return
        unfinished = self._record.with_name(TEMPORARY + self._record.name)
        lines = (escape(path) + b"\n" for path in sorted(self._now))
        replace_file(self._record, b"".join(lines), unfinished)

    def _judge(self, item: ScannedDirectory) -> ScannedDirectory | Unreadable:
        path = item.listing.path
        mounted = self._is_mount(path, item.device)
        reason = None if self._accept else self._reason(path, mounted=mounted)
        if reason is not None:
            return Unreadable(path, reason)
        if mounted and self._enter:
            self._now.add(path)
        return item

    def _reason(self, path: RelPath, *, mounted: bool) -> str | None:
        """Why the old entries of a directory have to stay, if so."""
        if mounted and not self._enter:
            return NOT_ENTERED if any(self._old_names(path)) else None
        if mounted == (path in self._before):
            return None
        names = list(self._old_names(path))
        if not names or any(
            map(os.path.lexists, (b"/".join((self._root, path, n)) for n in names))
        ):
            return None
        return MOUNTED_OVER if mounted else NOT_MOUNTED

    def _old_names(self, path: RelPath) -> Iterator[bytes]:
        """The names that the last commit has in a directory."""
        for listing in self._past.subtree(path) if self._past else ():
            if listing.path == path:
                for line in listing.leaves.splitlines():
                    yield unescape(line[: line.index(b"\t")])
            elif parent(listing.path) == path:
                yield basename(listing.path)

    def _is_mount(self, path: RelPath, device: int) -> bool:
        """Whether the directory is on another device than the one above it."""
        while self._above and not _is_within(path, self._above[-1][0]):
            self._above.pop()
        above = self._above[-1][1] if self._above else device
        self._above.append((path, device))
        return above != device


def _is_within(path: bytes, top: bytes) -> bool:
    return not top or path == top or path.startswith(top + b"/")


def read_mounts(record: Path) -> set[bytes]:
    """The mount points of the last commit; empty if the file is missing or damaged."""
    try:
        return {unescape(line) for line in record.read_bytes().splitlines()}
    except (FileNotFoundError, FormatError):
        return set()
