"""Reading commits for pages: a directory, a search, a comparison; each a page at a time.

Runs in threads.  Rules: each read is bounded in time or entries, whatever a commit holds; and long
work pauses, because a working thread blocks the event loop.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from huai_schema.codec.descriptor import Descriptor
from huai_schema.codec.escaping import escape, unescape
from huai_schema.codec.lines import decode_directory
from huai_schema.codec.listing import Listing
from huai_schema.diff.changes import Moved, is_touched_directory
from huai_schema.diff.diff import Difference, diff
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.layout.snapshot import Snapshot, leaves_from
from huai_schema.paths import RelPath, basename, join, parent
from huai_server.http.asgi.errors import HttpError
from huai_server.http.pages.history import KEPT, RECENT, newest_commits
from huai_server.store.repository import Head, Repository

ROWS = 200
"""Names, hits or differences on one page."""
_SEARCH_SECONDS = 3.0
_WORK_SECONDS, _PAUSE_SECONDS = 0.002, 0.001
_FURTHEST = 100_000
"""Differences that may be skipped for a later page; beyond them, use git."""
_FEWEST_DIGITS = 6
_WILDCARDS = re.compile(rb"[*?]+")
KINDS = ("all", "added", "removed", "changed", "moved")
"""The kinds of differences that a page can be limited to."""
LATEST = "latest"
"""The name of the newest commit in addresses."""
_T = TypeVar("_T")


class Opened(NamedTuple):
    """A commit and its snapshot."""

    head: Head
    snapshot: Snapshot
    descriptor: Descriptor


class DirectoryPage(NamedTuple):
    """A part of a directory: subdirectories first, then files and symlinks, both by name."""

    directories: list[Directory]
    leaves: list[File | Symlink]
    total: int


class Hits(NamedTuple):
    """The results of a search."""

    entries: list[Entry]
    complete: bool


class Differences(NamedTuple):
    """A part of the differences between two commits."""

    rows: list[Difference]
    touched: int
    """Directories in this part with only another time, which have no row."""
    later: int | None
    """The place where the next part begins; None for the last part."""


def open_commit(repository: Path, name: str) -> Opened:
    """Open the commit `latest`, or that with a serial or the beginning of an id; 404 for none."""
    commits = newest_commits(repository, 1 if name == LATEST else KEPT)
    head = next((each for each in commits if name == LATEST or _is_named(each, name)), None)
    if head is None:
        raise HttpError(404, "no such commit", hint="old commits are not kept for ever")
    descriptor, past = Repository(repository).snapshot(head)
    snapshot = Snapshot(past.reader, past.tree, head.info.totals.entries)
    return Opened(head, snapshot, descriptor)


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
        steps = snapshot.level(path, tree)
    own = next(steps, None)
    if not isinstance(own, Listing):
        return None
    below = (RelPath(step[0]) for step in steps)
    directories = [each for each in below if parent(each) == path]
    count = own.leaves.count(b"\n")
    read_directories = [snapshot.directory(each) for each in directories[start : start + ROWS]]
    first = max(0, start - len(directories))
    leaves = [*islice(leaves_from(own, first), ROWS - len(read_directories))]
    return DirectoryPage(
        [each for each in read_directories if each], leaves, len(directories) + count
    )


def search(opened: Opened, path: RelPath, text: bytes) -> Hits:
    """Find paths below a directory with `text` in their name; in the path, if it has a slash.

    With `*` or `?`, the whole name has to match, or the end of the path.  ASCII letters are
    compared without case.
    """
    matches, literal = _matcher(text.lower())
    end = time.monotonic() + _SEARCH_SECONDS
    hits: list[Entry] = []
    for listing in with_pauses(opened.snapshot.subtree(path)):
        if listing.attributes and matches(listing.path.lower()):
            hits.append(decode_directory(listing.path, listing.attributes))
        for name in _names_with(listing.leaves, literal):
            child = join(listing.path, name)
            leaf = opened.snapshot.leaf(child) if matches(child.lower()) else None
            if leaf is not None:
                hits.append(leaf)
            if len(hits) >= ROWS or time.monotonic() > end:
                break
        if len(hits) >= ROWS or time.monotonic() > end:
            return Hits(hits[:ROWS], complete=False)
    return Hits(hits, complete=True)


def _matcher(text: bytes) -> tuple[Callable[[bytes], object], bytes]:
    """Return a test of paths in lower case, and what each matching name contains, escaped."""
    last, by_path = text.rpartition(b"/")[2], b"/" in text
    if not _WILDCARDS.search(text):
        return lambda path: text in (path if by_path else basename(path)), escape(last)
    glob = (b"*/" + text if by_path else text).replace(b"[", b"[[]")
    pattern = translate(glob.decode("latin-1"))
    matches = re.compile(pattern.encode("latin-1")).match
    literal = escape(max(_WILDCARDS.split(last), key=len))
    return lambda path: matches(b"/" + path if by_path else basename(path)), literal


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


def kind_of(difference: Difference) -> str:
    """Return added, removed, changed, moved or touched; see `Differences.touched`."""
    if isinstance(difference, Moved):
        return "moved"
    if difference.old is None:
        return "added"
    if difference.new is None:
        return "removed"
    return "touched" if is_touched_directory(difference.old, difference.new) else "changed"


def differences(old: Opened, new: Opened, start: int, kind: str = "all") -> Differences:
    """Read at most `ROWS` differences of a kind of `KINDS` between two commits.

    `start` counts differences of every kind, touched directories too.  A part with fewer rows is
    not always the last one: it also ends after many differences without a row.
    """
    if start > _FURTHEST:
        raise HttpError(404, "too many differences for a page", hint="see them with git")
    rows: list[Difference] = []
    touched = 0
    steps = with_pauses(diff(old.snapshot, new.snapshot))
    for place, step in enumerate(islice(steps, start, None), start):
        is_row = (own := kind_of(step)) != "touched" and kind in {"all", own}
        if (len(rows) == ROWS and is_row) or place - start == _FURTHEST:
            return Differences(rows, touched, place)
        touched += own == "touched"
        if is_row:
            rows.append(step)
    return Differences(rows, touched, None)


class Version(NamedTuple):
    """An entry since a commit."""

    head: Head
    """The commit that made it so; the oldest commit that was read, if it was so before."""
    entry: File | Symlink | None
    """None: there was no file or symlink at the path."""


def versions(repository: Path, path: RelPath) -> list[Version]:
    """Return the versions of a path in the `RECENT` newest commits, newest first."""
    opened = Repository(repository)
    result: list[Version] = []
    end = time.monotonic() + _SEARCH_SECONDS
    for head in with_pauses(newest_commits(repository, RECENT)):
        entry = opened.snapshot(head)[1].leaf(path)
        if result and result[-1].entry == entry:
            result[-1] = Version(head, entry)
        else:
            result.append(Version(head, entry))
        if time.monotonic() > end:
            break
    return result


def neighbours(repository: Path, old: Head, new: Head) -> tuple[str | None, str | None]:
    """Return the ids of the commits before `old` and after `new`; None at the end."""
    ids = [each.commit for each in newest_commits(repository, KEPT)]
    before, after = ids.index(old.commit) + 1, ids.index(new.commit) - 1
    return ids[before] if before < len(ids) else None, ids[after] if after >= 0 else None
