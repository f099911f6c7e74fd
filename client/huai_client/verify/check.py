"""Compares the downstream tree with a snapshot and reports what differs; repairs nothing.

Streams: see `diff.compare` for the memory that it takes.  Rule: a path that could not be read is
reported as unreadable, and never as missing or right.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from huai_client.diff.compare import Compared, Finding, Match, Missing
from huai_client.diff.findings import Difference, FoundDifference, Kind
from huai_client.tree import PathError, View
from huai_client.tree.hashing import Hashed, Hashing
from huai_client.tree.local_entry import Unreadable
from huai_schema.entries import Directory, Entry, File

_READ, _LOOK = 0o400, 0o500
"""The mode bits that an owner needs to read a file, and to look into a directory."""


class Checkpoint(NamedTuple):
    """All paths up to here were compared; only some extraneous leaves are not reported yet."""

    order: bytes
    """A key of `paths.tree_order`."""


@dataclass(slots=True)
class VerifyTotals:
    """What was looked at."""

    entries: int = 0
    """Of the snapshot."""
    files: int = 0
    """Regular files among them."""
    hashed: int = 0
    """Files that were read and compared by digest."""
    bytes: int = 0
    """Of the files that were read."""
    undigested: int = 0
    """Files without a digest, or with a mode that shuts this user out: only their attributes could
    be compared."""


def _never() -> bool:
    return False


def check_steps(
    view: View,
    steps: Iterable[Compared],
    tally: VerifyTotals,
    *,
    content: bool,
    pause: Callable[[], bool] = _never,
) -> Iterator[FoundDifference | Checkpoint]:
    """The differences that `steps` found; `content`: read files as well.

    Adds to `tally`.  When `pause` says True after a step, yields what is known of all paths so far,
    and then a `Checkpoint`.
    """
    with Hashing[Match]() as hashing:
        for step in steps:
            for finding in step.findings:
                if content and isinstance(finding, Match) and _worth_reading(finding):
                    yield from _read(view, finding, hashing, tally)
                else:
                    yield from _difference(finding)
            tally.entries += step.entries
            tally.files += step.files
            tally.undigested += step.undigested
            # The key of the top directory is empty, and would mean "from the beginning".
            if step.order and pause():
                yield from _hashed(hashing.rest(), tally)
                yield Checkpoint(step.order)
        yield from _hashed(hashing.rest(), tally)


def _read(
    view: View, match: Match, hashing: Hashing[Match], tally: VerifyTotals
) -> Iterator[FoundDifference]:
    try:
        handle = view.open_file(match.wanted.path)
    except PathError as error:
        if closed(match.wanted):
            tally.undigested += 1
            yield from _difference(match)
            return
        difference = Difference(error.path, Kind.UNREADABLE, reason=error.reason)
        yield FoundDifference(difference, match.wanted)
        return
    yield from _hashed(hashing.add(match, handle), tally)


def closed(wanted: Entry) -> bool:
    """Whether the wanted mode itself shuts this user out, so that the tree is not to blame."""
    needed = _LOOK if isinstance(wanted, Directory) else _READ
    return os.geteuid() != 0 and wanted.mode & needed != needed


def _worth_reading(match: Match) -> bool:
    """Whether to read it: a file with a digest and the right size that is no hardlink."""
    wanted = match.wanted
    if not isinstance(wanted, File) or wanted.digest is None:
        return False
    if not match.attributes.isdisjoint({"type", "size"}):
        return False
    return wanted.link is None or "link" in match.attributes


def _hashed(done: Iterable[Hashed[Match]], tally: VerifyTotals) -> Iterator[FoundDifference]:
    for hashed in done:
        match = hashed.tag
        wanted = match.wanted
        assert isinstance(wanted, File)  # noqa: S101 - `_worth_reading` lets nothing else through
        if hashed.digest is None:
            yield FoundDifference(
                Difference(wanted.path, Kind.UNREADABLE, reason=hashed.reason), wanted
            )
            continue
        tally.hashed += 1
        tally.bytes += wanted.size
        if hashed.digest != wanted.digest:
            match = match._replace(attributes=match.attributes | {"digest"})
        yield from _difference(match)


def _difference(finding: Finding) -> Iterator[FoundDifference]:
    if isinstance(finding, Match):
        if finding.attributes:
            names = tuple(sorted(finding.attributes))
            yield FoundDifference(
                Difference(finding.wanted.path, Kind.DIFFERS, names), finding.wanted
            )
    elif isinstance(finding, Missing):
        yield FoundDifference(Difference(finding.wanted.path, Kind.MISSING), finding.wanted)
    elif isinstance(finding, Unreadable):
        yield FoundDifference(Difference(finding.path, Kind.UNREADABLE, reason=finding.reason))
    else:
        yield FoundDifference(Difference(finding.path, Kind.EXTRANEOUS))
