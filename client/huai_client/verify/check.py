"""Compares the downstream tree with a snapshot and reports what differs; repairs nothing.

Streams: see `merge` for the memory that it takes.  Rule: a path that could not be read is reported
as unreadable, and never as missing or right.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from huai_client.diff.findings import Difference, FoundDifference, Kind
from huai_client.diff.merge import Finding, Match, Missing, merge
from huai_client.tree import PathError, View
from huai_client.tree.hashing import Hashed, Hashing
from huai_client.tree.local_entry import Unreadable
from huai_schema.entries import Directory, Entry, File
from huai_schema.paths import tree_order

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


def verify(
    view: View, wanted: Iterable[Entry], *, content: bool, owners: bool
) -> Iterator[Difference]:
    """What differs between the tree and `wanted` (in tree order).

    With `content` the BLAKE3 of every file with a digest is compared, too; with `owners` owner and
    group, where this process may set them.  In tree order, except that extraneous leaves and files
    that were read come a little later.
    """
    findings = merge(view, wanted, owners=view.owners if owners else None)
    for item in check_findings(view, findings, VerifyTotals(), content=content):
        if isinstance(item, FoundDifference):
            yield item.difference


def _never() -> bool:
    return False


def check_findings(
    view: View,
    findings: Iterable[Finding],
    tally: VerifyTotals,
    *,
    content: bool,
    pause: Callable[[], bool] = _never,
) -> Iterator[FoundDifference | Checkpoint]:
    """The differences among `findings`, which are in tree order; `content`: read files as well.

    Adds to `tally`.  When `pause` says True, yields what is known of all paths so far, and then a
    `Checkpoint`.
    """
    order = b""
    with Hashing[Match]() as hashing:
        for finding in findings:
            if isinstance(finding, Match | Missing):
                wanted = finding.wanted
                order = tree_order(wanted.path, directory=isinstance(wanted, Directory))
                _count(tally, wanted)
            if content and isinstance(finding, Match) and _worth_reading(finding):
                yield from _read(view, finding, hashing, tally)
            else:
                yield from _difference(finding)
            # The key of the top directory is empty, and would mean "from the beginning".
            if order and pause():
                yield from _hashed(hashing.rest(), tally)
                yield Checkpoint(order)
        yield from _hashed(hashing.rest(), tally)


def _count(tally: VerifyTotals, wanted: Entry) -> None:
    tally.entries += 1
    if isinstance(wanted, File):
        tally.files += 1
        tally.undigested += wanted.digest is None


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
