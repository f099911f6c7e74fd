"""Reads what changed from the events that File::Rsync::Mirror::Recent records, as CPAN does.

Each file `RECENT-INTERVAL` has the events of its interval, and is merged into that of the next
longer one from time to time.  So files are read until one goes back to the last known event.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec

from huai_client.metadata.http import RolledBackError, UpstreamDownError
from huai_native._native import read_recent
from huai_schema.errors import FormatError

_NAME = re.compile(r"RECENT-(\d{0,4})([smhdWMQY])\.json")
"""The files of all intervals but Z, which is unlimited and has no deletions."""
_UNITS = "smhdWMQY"


class RecentMark(msgspec.Struct, frozen=True):
    """The newest event of a tree that is known."""

    epoch: str
    """Decimal, in seconds."""
    dirtymark: str
    """A mark that changes if older events were added."""


class _RecentFile(NamedTuple):
    """The result of `read_recent`."""

    newest: str | None
    is_complete: bool
    dirtymark: bytes
    intervals: list[bytes]
    events: list[tuple[bytes, bool]]


class RecentChanges(NamedTuple):
    """The events since a mark."""

    new: frozenset[bytes]
    """The paths of new and changed entries."""
    removed: frozenset[bytes]
    """The paths of removed entries, and those of all directories above, which may be gone."""
    lists: tuple[bytes, ...]
    """The names that the files of events may have; they do not name each other."""


def is_recent(name: str) -> bool:
    """Return True for the name of a file of events."""
    return _NAME.fullmatch(name) is not None


def shortest_interval(names: Iterable[str]) -> str:
    """Return the name of the file of the newest events; or an empty text."""
    return min(filter(is_recent, names), key=_duration, default="")


def _duration(name: str) -> tuple[int, int]:
    """Return a key that sorts names by the lengths of their intervals."""
    number, unit = _NAME.findall(name)[0]
    return _UNITS.index(unit), int(number or 1)


def read_events(
    newest: str,
    past: RecentMark | None,
    fetch: Callable[[str], AbstractContextManager[Path]],
) -> tuple[RecentMark, RecentChanges | None]:
    """Return the mark of the newest event in the file `newest`, and the events since `past`.

    The events are None if they are not known, so that the whole tree has to be listed.  `fetch`
    gets a file's name and yields its path.  Raises `RolledBackError` if the newest event is older
    than `past`, `FormatError` for a malformed file.
    """

    def read(name: str) -> _RecentFile:
        since = past.epoch if past else None
        with fetch(name) as path, path.open("rb") as file:
            try:
                return _RecentFile(*read_recent(file, since))
            except FormatError as error:
                raise error.within(name) from error

    first = read(newest)
    mark = RecentMark(first.newest or "0", first.dirtymark.hex())
    if past is None or past.dirtymark != mark.dirtymark:
        return mark, None
    if Decimal(mark.epoch) < Decimal(past.epoch):
        raise RolledBackError(
            f"{newest} is older than the last one: its newest event is of {mark.epoch}, and "
            f"{past.epoch} was known",
            hint="if the upstream restored it: --accept-rollback",
        )
    names = {f"RECENT-{interval.decode('latin-1')}.json" for interval in first.intervals}
    older = sorted(filter(is_recent, names - {newest}), key=_duration)
    types = dict[bytes, bool]()
    with suppress(UpstreamDownError):  # one that was never merged is missing
        for file in chain([first], map(read, older)):
            for path, is_new in file.events:
                types.setdefault(path, is_new)
            if file.is_complete:
                return mark, _changes(types, [newest, *older])
    return mark, None


def _changes(types: dict[bytes, bool], names: list[str]) -> RecentChanges | None:
    """Return the newest event of each path as changes; None if a removed directory came back.

    What was in it has no events then.
    """
    new = frozenset(path for path, is_new in types.items() if is_new)
    removed = frozenset(types.keys() - new)
    if not removed.isdisjoint(_above(new)):
        return None
    lists = (b"RECENT.recent", b"RECENT-Z.json", *(name.encode() for name in names))
    return RecentChanges(new, removed.union(_above(removed)), lists)


def _above(paths: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the directories above `paths`, without the top."""
    for path in paths:
        while path := path.rpartition(b"/")[0]:
            yield path
