"""Reading commits for pages: a directory, a search, a comparison; each a page at a time.

Runs in threads.  Rules: each read is bounded in time or entries, whatever a commit holds; and long
work pauses, because a working thread blocks the event loop.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from huai_schema.codec.escaping import escape, unescape
from huai_schema.codec.listing import Listing
from huai_schema.diff.changes import Change, is_touched_directory
from huai_schema.diff.diff import Difference, diff
from huai_schema.entries import File, Symlink
from huai_schema.layout.snapshot import EntryLimit, Snapshot, leaves_from
from huai_schema.paths import RelPath, basename, join, parent
from huai_server.http.asgi.errors import HttpError
from huai_server.http.pages.history import KEPT, newest_commits
from huai_server.store.repository import Head, Repository

ROWS = 200
"""Names, hits or differences on one page."""
_SEARCH_SECONDS = 3.0
_WORK_SECONDS, _PAUSE_SECONDS = 0.002, 0.001
_FURTHEST = 100_000
"""Differences that may be skipped for a later page; beyond them, use git."""
_FEWEST_DIGITS = 6
_T = TypeVar("_T")


class Opened(NamedTuple):
    """A commit and its snapshot."""

    head: Head
    snapshot: Snapshot


class DirectoryPage(NamedTuple):
    """A part of a directory: subdirectories first, then files and symlinks, both by name."""

    directories: list[RelPath]
    leaves: list[File | Symlink]
    total: int


class Hits(NamedTuple):
    """The results of a search."""

    paths: list[tuple[RelPath, bool]]
    """Each path, and true for a directory."""
    complete: bool


class Differences(NamedTuple):
    """A part of the differences between two commits."""

    rows: list[Difference]
    touched: int
    """Directories in this part with only another time, which have no row."""
    later: int | None
    """The place where the next part begins; None for the last part."""


def open_commit(repository: Path, name: str) -> Opened:
    """Open the commit with this serial or beginning of an id; 404 if it is not kept."""
    head = next((each for each in newest_commits(repository, KEPT) if _is_named(each, name)), None)
    if head is None:
        raise HttpError(404, "no such commit", hint="old commits are not kept for ever")
    return Opened(head, Repository(repository).snapshot(head)[1])


def _is_named(head: Head, name: str) -> bool:
    is_id = len(name) >= _FEWEST_DIGITS and head.commit.startswith(name)
    return str(head.info.serial) == name or is_id


def read_directory(opened: Opened, path: RelPath, start: int) -> DirectoryPage | None:
    """Read `ROWS` names of a directory from the `start`-th on; None if it is not a directory."""
    snapshot = opened.snapshot
    tree = snapshot.own_tree(path)
    if tree is None:
        steps: Iterator[Listing | tuple[RelPath, bytes]] = snapshot.subtree(path)
    else:
        steps = snapshot.level(path, tree, EntryLimit(opened.head.info.totals.entries))
    own = next(steps, None)
    if not isinstance(own, Listing):
        return None
    below = (RelPath(step[0]) for step in steps)
    directories = [each for each in below if parent(each) == path]
    count = own.leaves.count(b"\n")
    shown_directories = directories[start : start + ROWS]
    first = max(0, start - len(directories))
    leaves = [*islice(leaves_from(own, first), ROWS - len(shown_directories))]
    return DirectoryPage(shown_directories, leaves, len(directories) + count)


def search(opened: Opened, path: RelPath, text: bytes) -> Hits:
    """Find paths below a directory with `text` in their name; in the path, if it has a slash.

    ASCII letters are compared without case.
    """
    needle, by_path = text.lower(), b"/" in text
    name_needle = escape(needle.rpartition(b"/")[2])
    end = time.monotonic() + _SEARCH_SECONDS
    hits: list[tuple[RelPath, bool]] = []
    for listing in with_pauses(opened.snapshot.subtree(path)):
        if needle in _searched_text(listing.path, by_path=by_path):
            hits.append((listing.path, True))
        for name in _names_with(listing.leaves, name_needle):
            child = join(listing.path, name)
            if needle in _searched_text(child, by_path=by_path):
                hits.append((child, False))
            if len(hits) >= ROWS or time.monotonic() > end:
                break
        if len(hits) >= ROWS or time.monotonic() > end:
            return Hits(hits[:ROWS], complete=False)
    return Hits(hits, complete=True)


def with_pauses(
    items: Iterable[_T],
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[_T]:
    """Yield `items`, with a pause every few milliseconds of work for the event loop."""
    begun = clock()
    for item in items:
        yield item
        if clock() - begun >= _WORK_SECONDS:
            pause(_PAUSE_SECONDS)
            begun = clock()


def _names_with(leaves: bytes, needle: bytes) -> Iterator[bytes]:
    """Yield the names of the lines that contain `needle` (escaped, lower case) anywhere.

    Other lines are not parsed: of a million names few match.
    """
    lowered = leaves.lower()
    at = lowered.find(needle)
    while 0 <= at < len(leaves):
        begin, end = leaves.rfind(b"\n", 0, at) + 1, leaves.index(b"\n", at)
        yield unescape(leaves[begin:end].partition(b"\t")[0])
        at = lowered.find(needle, end + 1)


def _searched_text(path: bytes, *, by_path: bool) -> bytes:
    return (path if by_path else basename(path)).lower()


def differences(old: Opened, new: Opened, start: int) -> Differences:
    """Read `ROWS` differences between two commits, from the `start`-th on."""
    if start > _FURTHEST:
        raise HttpError(404, "too many differences for a page", hint="see them with git")
    rows: list[Difference] = []
    touched = 0
    steps = with_pauses(diff(old.snapshot, new.snapshot))
    for place, step in enumerate(islice(steps, start, None), start):
        is_touched = isinstance(step, Change) and is_touched_directory(step.old, step.new)
        if (len(rows) == ROWS and not is_touched) or place - start == _FURTHEST:
            return Differences(rows, touched, place)
        if is_touched:
            touched += 1
        else:
            rows.append(step)
    return Differences(rows, touched, None)
