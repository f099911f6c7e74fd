"""Reading commits for pages: a directory, a comparison, versions; each a page at a time.

Runs in threads.  Rules: each read is bounded in time or entries, whatever a commit holds; and long
work pauses, because a working thread blocks the event loop.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice, takewhile
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from huai_schema.codec.descriptor import Descriptor
from huai_schema.codec.escaping import escape, unescape
from huai_schema.codec.listing import Listing
from huai_schema.diff.changes import Moved, is_touched_directory
from huai_schema.diff.diff import Difference, diff
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.layout.snapshot import Snapshot, leaves_from
from huai_schema.paths import RelPath, basename, show
from huai_server.http.asgi.errors import HttpError
from huai_server.http.pages.history import KEPT, newest_commits
from huai_server.http.pages.totals import Totals, TotalsCounter
from huai_server.store.repository import Head, Repository

ROWS = 200
"""Names or differences on one page."""
_VERSIONS_SECONDS = 3.0
_WORK_SECONDS, _PAUSE_SECONDS = 0.002, 0.001
_FURTHEST = 100_000
"""Differences that may be skipped for a later page; beyond them, use git."""
_FEWEST_DIGITS = 6
_LETTERS = 80
"""The most beginnings of names that are listed."""
SORTED_NAMES, _LETTERED_NAMES = 5000, 100_000
"""The most names of a directory that is sorted, and of one whose letters are listed."""
ORDERS: Mapping[str, Callable[[Entry, Totals], int]] = {
    "size": lambda entry, totals: -_size(entry, totals),
    "time": lambda entry, _: -entry.mtime,
}
"""The orders of a directory, the largest or the newest first."""
_READMES = (b"README", b"README.txt", b"README.md")
SUMMARIZED = 20_000
"""The most differences that are counted for a page."""
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


class Comparison(NamedTuple):
    """Two commits, and the ids of the commits around them; None at the end."""

    old: Opened
    new: Opened
    before: str | None
    after: str | None


class Place(NamedTuple):
    """A leaf, or a part of a directory: subdirectories first, then files and symlinks, by name."""

    entries: list[Entry]
    later: int | None = None
    """The place where the next part of the directory begins; None for the last part."""
    total: int | None = None
    """The number of names in the directory; None for a leaf."""
    readme: File | None = None
    """The first of README, README.txt and README.md in the directory."""
    totals: Totals = MappingProxyType({})
    """The sums of the subdirectories among `entries` that are counted by now."""
    letters: Sequence[tuple[str, int]] = ()
    """The beginnings of names of a directory with several parts, each with its first number."""


class Differences(NamedTuple):
    """A part of the differences between two commits."""

    rows: list[Difference]
    touched: int
    """Directories in this part with only another time, which have no row."""
    later: int | None
    """The place where the next part begins; None for the last part."""


class Count(NamedTuple):
    """The differences of one kind."""

    entries: int
    bytes: int
    """The sizes of these files, after the change or before their removal."""


class Summary(NamedTuple):
    """The differences between two commits by kind."""

    counts: Mapping[str, Count]
    complete: bool
    """False if only the first ones were counted."""


def open_commit(repository: Path, name: str) -> Opened:
    """Open the commit that `name` names (`_find_commit`), of the `KEPT` newest; raises 404."""
    return open_head(repository, _find_commit(newest_commits(repository, KEPT), name)[1])


def open_both(repository: Path, names: str) -> Comparison:
    """Open the commits `OLD..NEW`, each named as for `open_commit`; the latest without NEW.

    Raises 404, also for a text without dots.
    """
    old_name, dots, new_name = names.partition("..")
    if not dots:
        raise HttpError(404, "there is nothing at this address")
    commits = [*newest_commits(repository, KEPT)]
    old, old_head = _find_commit(commits, old_name)
    new, new_head = _find_commit(commits, new_name or LATEST)
    return Comparison(
        open_head(repository, old_head),
        open_head(repository, new_head),
        commits[old + 1].commit if old + 1 < len(commits) else None,
        commits[new - 1].commit if new else None,
    )


def open_head(repository: Path, head: Head) -> Opened:
    """Open a commit; reading more entries than it claims raises `FormatError`."""
    descriptor, past = Repository(repository).snapshot(head)
    snapshot = Snapshot(past.reader, past.tree, head.info.totals.entries)
    return Opened(head, snapshot, descriptor)


def _find_commit(commits: Iterable[Head], text: str) -> tuple[int, Head]:
    """Return position and head of the commit that `text` names; `commits` are newest first.

    Those after it are not read.  `text` is `latest`, a serial, an id or its first 6 digits or more,
    or a date, perhaps with a time (UTC), for the newest commit before it.  Raises 404 without such
    a commit.
    """
    time_limit = _parse_time(text)
    for position, head in enumerate(commits):
        is_id = len(text) >= _FEWEST_DIGITS and head.commit.startswith(text)
        if is_id or text in {LATEST, str(head.info.serial)} or head.time < time_limit:
            return position, head
    raise HttpError(404, "no such commit", hint="old commits are not kept for ever")


def _parse_time(text: str) -> float:
    """Parse a date, or date and time, in UTC to seconds since the epoch; 0 for other text."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() if "-" in text else 0
    except (ValueError, OverflowError):
        return 0


def read_place(
    opened: Opened, path: RelPath, counter: TotalsCounter, start: int = 0, order: str = ""
) -> Place:
    """Read a leaf, or `ROWS` names of a directory from number `start` on; raises 404 if missing.

    The README is looked up for the first part of a directory only.
    `order` is a key of `ORDERS`, for a directory of at most `SORTED_NAMES`; else it is by name.
    By size, subdirectories that are not counted yet come last.
    """
    snapshot = opened.snapshot
    if path and (leaf := snapshot.leaf(path)):
        return Place([leaf])
    part = snapshot.part(path, start, ROWS)
    if part is None:
        raise HttpError(404, "the commit names no such path")
    own, entries, total = part
    later = start + ROWS if start + ROWS < total else None
    readme = None if start else _find_readme(own)
    if order in ORDERS and total <= SORTED_NAMES:
        entries = _entries(snapshot, path, total)
        totals = counter.read(snapshot, entries)
        entries = _sorted(entries, ORDERS[order], totals)[start : start + ROWS]
        return Place(entries, later, total, readme, totals)
    letters = _letters(snapshot, own, total) if ROWS < total <= _LETTERED_NAMES else ()
    return Place(entries, later, total, readme, counter.read(snapshot, entries), letters)


def _entries(snapshot: Snapshot, path: RelPath, count: int) -> list[Entry]:
    """Return the first `count` entries of a directory: subdirectories, then leaves."""
    part = snapshot.part(path, 0, count)
    return part[1] if part else []


def _sorted(
    entries: list[Entry], order: Callable[[Entry, Totals], int], totals: Totals
) -> list[Entry]:
    """Return subdirectories, then leaves, both in an order; by name where it is the same."""
    return sorted(entries, key=lambda each: (not isinstance(each, Directory), order(each, totals)))


def _size(entry: Entry, totals: Totals) -> int:
    """Return the bytes of a file, or of those below a directory; -1 if it has or tells none."""
    if isinstance(entry, File):
        return entry.size
    return totals[entry.path].bytes if entry.path in totals else -1


def _letters(snapshot: Snapshot, listing: Listing, total: int) -> Sequence[tuple[str, int]]:
    """Return the first beginnings of names, each with the number of the first name that has it.

    Of subdirectories and leaves only the larger group counts; a beginning is one character longer
    than what all names of the group begin with.  None for more than `SORTED_NAMES` subdirectories.
    """
    lines = listing.leaves.split(b"\n")[:-1]
    first = total - len(lines)
    if first >= len(lines):
        if first > SORTED_NAMES:
            return ()
        entries = _entries(snapshot, listing.path, first)
        lines, first = [escape(basename(each.path)) for each in entries], 0
    ends = (_name(lines[0]), _name(lines[-1]))
    same = takewhile(lambda pair: pair[0] == pair[1], zip(*ends, strict=False))
    length = sum(1 for _ in same) + 1
    letters: list[tuple[str, int]] = []
    place = 0
    while place < len(lines) and len(letters) < _LETTERS:
        beginning = _beginning(lines[place], length)
        letters.append((show(beginning), first + place))
        place = bisect_right(lines, beginning, place + 1, key=lambda line: _beginning(line, length))
    return letters


def _name(line: bytes) -> bytes:
    """Return the name of a leaf from its line."""
    return unescape(line.partition(b"\t")[0])


def _beginning(line: bytes, length: int) -> bytes:
    """Return `length` bytes of the name in a line, and the rest of a UTF-8 character."""
    name = _name(line)
    while length < len(name) and name[length] & 0xC0 == 0x80:
        length += 1
    return name[:length]


def _find_readme(listing: Listing) -> File | None:
    """Return the first of README, README.txt and README.md in a directory; None without any."""
    if b"README" not in listing.leaves:  # much quicker than the next ones
        return None
    lines = b"\n" + listing.leaves
    places = (lines.find(b"\n%b\t" % name) for name in _READMES)
    numbers = (lines.count(b"\n", 0, place) for place in places if place >= 0)
    leaves = (next(leaves_from(listing, number)) for number in numbers)
    return next((leaf for leaf in leaves if isinstance(leaf, File)), None)


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


def kind_of(difference: Difference) -> str:
    """Return added, removed, changed, moved or touched; see `Differences.touched`."""
    if isinstance(difference, Moved):
        return "moved"
    if difference.old is None:
        return "added"
    if difference.new is None:
        return "removed"
    return "touched" if is_touched_directory(difference.old, difference.new) else "changed"


def summarize(comparison: Comparison) -> Summary:
    """Count the differences between two commits by kind, at most the first `SUMMARIZED`."""
    counts: dict[str, Count] = {}
    steps = with_pauses(diff(comparison.old.snapshot, comparison.new.snapshot))
    for step in islice(steps, SUMMARIZED):
        kind = kind_of(step)
        entry = None if isinstance(step, Moved) else step.new or step.old
        entries, size = counts.get(kind, Count(0, 0))
        counts[kind] = Count(entries + 1, size + (entry.size if isinstance(entry, File) else 0))
    return Summary(counts, complete=next(steps, None) is None)


def differences(comparison: Comparison, start: int, kind: str = "all") -> Differences:
    """Read at most `ROWS` differences of a kind of `KINDS` between two commits.

    Raises 404 for a `start` that is too far.

    `start` counts differences of every kind, touched directories too.  A part with fewer rows is
    not always the last one: it also ends after many differences without a row.
    """
    if start > _FURTHEST:
        raise HttpError(404, "too many differences for a page", hint="see them with git")
    rows: list[Difference] = []
    touched = 0
    steps = with_pauses(diff(comparison.old.snapshot, comparison.new.snapshot))
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


def versions(repository: Path, path: RelPath, commits: Iterable[Head]) -> list[Version]:
    """Return the versions of a path in `commits`, both newest first; reads for at most 3 s."""
    opened = Repository(repository)
    result: list[Version] = []
    end = time.monotonic() + _VERSIONS_SECONDS
    for head in with_pauses(commits):
        entry = opened.snapshot(head)[1].leaf(path)
        if result and result[-1].entry == entry:
            result[-1] = Version(head, entry)
        else:
            result.append(Version(head, entry))
        if time.monotonic() > end:
            break
    return result
