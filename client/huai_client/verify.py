"""Compares the downstream tree with a snapshot and says what differs; mends nothing.

Streaming: see `merge` for what memory it takes.  Rule: what could not be read is neither
missing nor right.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from huai_client.hashing import Hashed, Hashing
from huai_client.merge import Finding, Match, Missing, merge
from huai_client.observe import Unreadable
from huai_client.tree import PathError, View
from huai_schema.entries import Entry, File
from huai_schema.paths import RelPath


class Kind(StrEnum):
    """What is wrong with a path."""

    MISSING = "missing"
    STRANGER = "stranger"
    DIFFERS = "differs"
    UNREADABLE = "unreadable"


class Difference(NamedTuple):
    """One path that is not as the snapshot says."""

    path: RelPath
    kind: Kind
    attributes: tuple[str, ...] = ()
    """For `DIFFERS`, sorted: the names of `observe.differences`, and "digest"."""
    reason: str = ""
    """For `UNREADABLE`: why."""


def verify(
    view: View, wanted: Iterable[Entry], *, content: bool, owners: bool
) -> Iterator[Difference]:
    """What differs between the tree and `wanted` (in tree order).

    With `content` the BLAKE3 of every file that carries a digest is compared too; with
    `owners` owner and group, where this process may set them.  In tree order, but for
    stranger leaves and files that were read, which come a little later.
    """
    names = view.owners if owners else None
    with Hashing[Match]() as hashing:
        for finding in merge(view, wanted, owners=names):
            if not (content and isinstance(finding, Match) and _worth_reading(finding)):
                yield from _difference(finding)
                continue
            try:
                handle = view.open_file(finding.wanted.path)
            except PathError as error:
                yield Difference(error.path, Kind.UNREADABLE, reason=error.reason)
                continue
            for hashed in hashing.add(finding, handle):
                yield from _hashed(hashed)
        for hashed in hashing.rest():
            yield from _hashed(hashed)


def _worth_reading(match: Match) -> bool:
    """A file with a digest, of the right size, whose content is not read as its leader's."""
    wanted = match.wanted
    if not isinstance(wanted, File) or wanted.digest is None:
        return False
    if not match.attributes.isdisjoint({"type", "size"}):
        return False
    return wanted.link is None or "link" in match.attributes


def _hashed(hashed: Hashed[Match]) -> Iterator[Difference]:
    match = hashed.tag
    wanted = match.wanted
    if hashed.digest is None:
        yield Difference(wanted.path, Kind.UNREADABLE, reason=hashed.reason)
    elif isinstance(wanted, File) and hashed.digest != wanted.digest:
        yield from _difference(match._replace(attributes=match.attributes | {"digest"}))
    else:
        yield from _difference(match)


def _difference(finding: Finding) -> Iterator[Difference]:
    if isinstance(finding, Match):
        if finding.attributes:
            names = tuple(sorted(finding.attributes))
            yield Difference(finding.wanted.path, Kind.DIFFERS, names)
    elif isinstance(finding, Missing):
        yield Difference(finding.wanted.path, Kind.MISSING)
    elif isinstance(finding, Unreadable):
        yield Difference(finding.path, Kind.UNREADABLE, reason=finding.reason)
    else:
        yield Difference(finding.path, Kind.STRANGER)
