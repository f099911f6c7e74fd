"""The comparison of the downstream tree with a snapshot; it repairs nothing.

Streams: see `diff.compare` for its memory.  Rule: a path that could not be read is reported as
unreadable, and never as missing or right.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from huai_client.diff.candidate import Difference, DifferenceKind, FoundDifference
from huai_client.diff.compare import Compared, Finding, Match, Missing
from huai_client.tree import PathError, View
from huai_client.tree.hashing import Hashed, Hashing
from huai_client.tree.view import Unreadable
from huai_schema.entries import Directory, Entry, File

_READ, _LIST = 0o400, 0o500
"""The mode bits that an owner needs to read a file, and to list a directory."""


class Checkpoint(NamedTuple):
    """A position up to which all is compared; only some extraneous leaves are not reported yet."""

    order: bytes
    """A key of `paths.tree_order`."""


@dataclass(slots=True)
class VerifyTotals:
    """The totals of a run."""

    entries: int = 0
    """Entries of the snapshot."""
    files: int = 0
    """Regular files among them."""
    hashed: int = 0
    """Files that were read and compared by digest."""
    bytes: int = 0
    """Bytes of the files that were read."""
    seen_files: int = 0
    """Files among these whose digests were seen when they arrived, not stated by the upstream."""
    undigested: int = 0
    """Files of which only attributes were compared: they have no digest, or an unreadable mode."""

    def add(self, more: "VerifyTotals") -> None:
        """Add the totals of another process."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(more, name))


def check_steps(
    view: View,
    steps: Iterable[Compared],
    tally: VerifyTotals,
    *,
    content: bool,
    pause: Callable[[], bool] = lambda: False,
) -> Iterator[FoundDifference | Checkpoint]:
    """Yield the differences in `steps`; with `content` read files as well, in a few threads.

    Adds to `tally`.  When `pause` returns True after a step, yields the pending differences of all
    paths so far, and then a `Checkpoint`.
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
    """Queue a file for hashing; yield differences known by now, its own if it is unreadable."""
    try:
        handle = view.open_file(match.expected.path)
    except PathError as error:
        if denies_access(match.expected):
            tally.undigested += 1
            yield from _difference(match)
            return
        difference = Difference(error.path, DifferenceKind.UNREADABLE, reason=error.reason)
        yield FoundDifference(difference, match.expected)
        return
    yield from _hashed(hashing.add(match, handle), tally)


def denies_access(expected: Entry) -> bool:
    """Return True if the expected mode denies this user access: then unreadable is right."""
    needed = _LIST if isinstance(expected, Directory) else _READ
    return os.geteuid() != 0 and expected.mode & needed != needed


def _worth_reading(match: Match) -> bool:
    """Return True for a file with a digest and the right size, unless it is a right hardlink."""
    expected = match.expected
    if not isinstance(expected, File) or expected.digest is None:
        return False
    if not match.attributes.isdisjoint({"type", "size"}):
        return False
    return expected.link is None or "link" in match.attributes


def _hashed(done: Iterable[Hashed[Match]], tally: VerifyTotals) -> Iterator[FoundDifference]:
    """Yield the differences of files whose digests are computed; add to `tally`."""
    for hashed in done:
        match = hashed.tag
        expected = match.expected
        assert isinstance(expected, File)  # noqa: S101 - `_worth_reading` lets nothing else through
        if hashed.digest is None:
            yield FoundDifference(
                Difference(expected.path, DifferenceKind.UNREADABLE, reason=hashed.reason), expected
            )
            continue
        tally.hashed += 1
        tally.seen_files += match.has_seen_digest
        tally.bytes += expected.size
        if hashed.digest != expected.digest:
            match = match._replace(attributes=match.attributes | {"digest"})
        yield from _difference(match)


def _difference(finding: Finding) -> Iterator[FoundDifference]:
    """Yield the difference of a finding, unless it matches."""
    if isinstance(finding, Match):
        if finding.attributes:
            names = tuple(sorted(finding.attributes))
            yield FoundDifference(
                Difference(finding.expected.path, DifferenceKind.DIFFERS, names), finding.expected
            )
    elif isinstance(finding, Missing):
        yield FoundDifference(
            Difference(finding.expected.path, DifferenceKind.MISSING), finding.expected
        )
    elif isinstance(finding, Unreadable):
        yield FoundDifference(
            Difference(finding.path, DifferenceKind.UNREADABLE, reason=finding.reason)
        )
    else:
        yield FoundDifference(Difference(finding.path, DifferenceKind.EXTRANEOUS))
