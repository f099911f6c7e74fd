"""From what a scan saw to what is committed: never a lie.

Where the tree could not be read, or changed while it was looked at, the entries of the last
commit stay, and the path is named.  What is new and could not be read is left out and named
as well.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from huai_schema.commits import Totals
from huai_schema.escaping import escape, unescape
from huai_schema.layout import join_digests
from huai_schema.limits import DIGEST_BYTES
from huai_schema.lines import count_files
from huai_schema.listing import Listing
from huai_schema.paths import basename
from huai_schema.snapshot import Snapshot
from huai_server.hardlinks import HardlinkGroups
from huai_server.scan.types import Problem, ScannedDirectory, Unreadable

_SIZE = re.compile(rb"^[^\t\n]*\t([0-9]+)\t", re.MULTILINE)


class Assembly:
    """The listings of one commit, with what was counted and what went wrong."""

    def __init__(self, past: Snapshot | None) -> None:
        """`past` is the last commit's snapshot, if there is one."""
        self._past = past
        self._hardlinks = HardlinkGroups()
        self.problems: list[Problem] = []
        self.skipped = 0
        self._files = self._directories = self._symlinks = self._bytes = 0

    @property
    def totals(self) -> Totals:
        """What has passed so far."""
        return Totals(self._files, self._directories, self._symlinks, self._bytes)

    def listings(self, scanned: Iterable[ScannedDirectory | Unreadable]) -> Iterator[Listing]:
        """The tree to commit, in tree order."""
        for listing in chain.from_iterable(map(self._listings_of, scanned)):
            self._count(listing)
            yield listing

    def _listings_of(self, item: ScannedDirectory | Unreadable) -> Iterable[Listing]:
        if isinstance(item, Unreadable):
            self.problems.append(Problem(item.path, item.reason))
            return self._past.subtree(item.path) if self._past else ()
        self.skipped += item.skipped
        listing = item.listing._replace(leaves=self._hardlinks.resolve(item))
        if item.problems:
            self.problems.extend(item.problems)
            listing = self._with_past_leaves(listing, item.problems)
        return (listing,)

    def _with_past_leaves(self, listing: Listing, problems: Iterable[Problem]) -> Listing:
        """For each problem the line and digest of the last commit, or none."""
        unsure = {escape(basename(problem.path)) for problem in problems}
        past = self._past.listing(listing.path) if self._past else None
        leaves = [leaf for leaf in _leaves(listing) if leaf.name not in unsure]
        if past is not None:
            leaves += [leaf for leaf in _leaves(past) if leaf.name in unsure]
        leaves.sort(key=lambda leaf: unescape(leaf.name))
        return listing._replace(
            leaves=b"".join(leaf.line for leaf in leaves),
            digests=join_digests((count_files(leaf.line), leaf.digest) for leaf in leaves),
        )

    def _count(self, listing: Listing) -> None:
        files = count_files(listing.leaves)
        self._directories += 1
        self._files += files
        self._symlinks += listing.leaves.count(b"\n") - files
        self._bytes += _content_bytes(listing.leaves)


class _Leaf(NamedTuple):
    name: bytes
    """Escaped."""
    line: bytes
    digest: bytes


def _leaves(listing: Listing) -> Iterator[_Leaf]:
    """The lines of a listing, each with its digest."""
    files = 0
    for line in listing.leaves.splitlines(keepends=True):
        place = DIGEST_BYTES * files
        count = count_files(line)
        digest = listing.digests[place : place + DIGEST_BYTES * count]
        files += count
        yield _Leaf(line[: line.index(b"\t")], line, digest)


def _content_bytes(leaves: bytes) -> int:
    return sum(map(int, _SIZE.findall(leaves)))
