"""From what a scan saw to the listings of a commit.

Where a path could not be read, or changed while it was read, the entries of the last commit stay; a
new path that could not be read is left out.  Either is a problem, and named.  Rule: entries that
stay have to fit the new ones, so a hardlink that stays although its leader is gone becomes a file
of its own.
"""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from io import BytesIO
from itertools import chain
from typing import NamedTuple

from huai_native._native import HardlinkGroups, Run, leaf_totals
from huai_schema.codec.commits import Totals
from huai_schema.codec.digests import join_digests
from huai_schema.codec.escaping import escape, unescape
from huai_schema.codec.lines import count_files, decode_leaves
from huai_schema.codec.listing import Listing
from huai_schema.entries import File
from huai_schema.layout.snapshot import Snapshot
from huai_schema.limits import DIGEST_BYTES
from huai_schema.paths import RelPath, ancestors, basename, path_order
from huai_server.commit.link_record import LinkRecord, pair
from huai_server.commit.remarks import Remarks
from huai_server.scan.native import take_apart
from huai_server.scan.types import Problem, ScannedDirectory, Unreadable

KEPT = "its old entry stays"
LEFT_OUT = "it is left out, as there is no old entry"
CLAMPED = "the nearest time that fits is committed"

_LINK = b"\th"


class TreeBuilder:
    """The listings of one commit, with totals, problems and remarks."""

    def __init__(
        self,
        past: Snapshot | None,
        *,
        check_readable: bool = True,
        record: LinkRecord | None = None,
    ) -> None:
        """`past` is the last commit's snapshot, if there is one.

        `check_readable`: remark what others may not read.  `record` gets the groups of hardlinks.
        """
        self._record = record
        self._past = past
        self._hardlinks = HardlinkGroups()
        self._past_listing: Listing | None = None
        self._kept: set[RelPath] = set()
        self._waiting: list[tuple[bytes, RelPath]] = []
        self.problems: list[Problem] = []
        self.remarks = Remarks(check_readable=check_readable)
        self.skipped = 0
        self._files = self._directories = self._symlinks = self._bytes = 0

    @property
    def totals(self) -> Totals:
        """Of the listings so far."""
        return Totals(self._files, self._directories, self._symlinks, self._bytes)

    def listings(
        self, scanned: Iterable[ScannedDirectory | Unreadable | Run]
    ) -> Iterator[Listing | Run]:
        """The tree to commit, in tree order."""
        for item in self._listings(scanned):
            if isinstance(item, Run):
                self._hardlinks.resolve_run(item)
                self._count_run(item)
            else:
                self._count(item)
            if self._record is not None:
                self._record.add(self._hardlinks.take_pairs())
            yield item

    def _apart(
        self, scanned: Iterable[ScannedDirectory | Unreadable | Run]
    ) -> Iterator[ScannedDirectory | Unreadable | Run]:
        """Runs are taken apart where something may have to stay between their directories."""
        for item in scanned:
            if isinstance(item, Run) and self._waiting:
                yield from take_apart(item)
            else:
                yield item

    def _listings(
        self, scanned: Iterable[ScannedDirectory | Unreadable | Run]
    ) -> Iterator[Listing | Run]:
        for item in self._apart(scanned):
            if isinstance(item, Run):
                yield item
                continue
            path = item.path if isinstance(item, Unreadable) else item.listing.path
            while self._waiting and self._waiting[0][0] < path_order(path):
                yield from self._past_subtree(heappop(self._waiting)[1])
            if isinstance(item, Unreadable):
                past = self._past_subtree(item.path)
                first = next(past, None)
                outcome = KEPT if first is not None else LEFT_OUT
                self.problems.append(Problem(item.path, item.reason, outcome))
                yield from chain(() if first is None else (first,), past)
            else:
                yield self._listing(item)
        while self._waiting:
            yield from self._past_subtree(heappop(self._waiting)[1])

    def _listing(self, item: ScannedDirectory) -> Listing:
        self.skipped += item.skipped + len(item.left_out)
        self.remarks.take(item)
        here = item.listing.path
        unsure = {
            escape(basename(each.path)): each.path for each in item.problems if each.path != here
        }
        listing = item.listing
        if item.hardlinks:
            leaves = self._hardlinks.resolve(listing, item.identities, set(unsure))
            listing = listing._replace(leaves=leaves or listing.leaves)
        listing = self._with_past_leaves(listing, unsure) if unsure else listing
        self.problems += (
            each._replace(outcome=self._outcome(each, here)) for each in item.problems
        )
        return listing

    def _outcome(self, problem: Problem, directory: RelPath) -> str:
        if problem.path == directory:
            return CLAMPED
        if problem.path in self._kept or (self._past and self._past.listing(problem.path)):
            return KEPT
        return LEFT_OUT

    def _with_past_leaves(self, listing: Listing, unsure: dict[bytes, RelPath]) -> Listing:
        """The listing with the last commit's lines of the unsure names, or without these names."""
        kept = [leaf for leaf in self._past_leaves(listing.path) if leaf.name in unsure]
        self._kept |= {unsure[leaf.name] for leaf in kept}
        # In the last commit the name may be a directory: then all below it stays as well.
        for name in unsure.keys() - {leaf.name for leaf in kept}:
            heappush(self._waiting, (path_order(unsure[name]), unsure[name]))
        leaves = [leaf for leaf in _leaves(listing) if leaf.name not in unsure]
        leaves += [self._drop_dangling_link(listing.path, leaf) for leaf in kept]
        leaves.sort(key=lambda leaf: unescape(leaf.name))
        return listing._replace(
            leaves=b"".join(leaf.line for leaf in leaves),
            digests=join_digests((count_files(leaf.line), leaf.digest) for leaf in leaves),
        )

    def _past_leaves(self, path: RelPath) -> Iterator["_Leaf"]:
        """What the last commit has in a directory, which is asked of every part of a large one."""
        if self._past is None:
            return
        if self._past_listing is None or self._past_listing.path != path:
            self._past_listing = self._past.listing(path)
        if self._past_listing is not None:
            yield from _leaves(self._past_listing)

    def _past_subtree(self, path: RelPath) -> Iterator[Listing]:
        """The last commit's listings at `path` and below, if it has a directory there."""
        for listing in self._past.subtree(path) if self._past else ():
            self._kept.add(path)
            if _LINK not in listing.leaves:
                yield listing
                continue
            lines = (self._drop_dangling_link(listing.path, leaf).line for leaf in _leaves(listing))
            yield listing._replace(leaves=b"".join(lines))

    def _drop_dangling_link(self, directory: RelPath, leaf: "_Leaf") -> "_Leaf":
        """The line without its hardlink field, if the leader is gone or is another file now."""
        (entry,) = decode_leaves(directory, leaf.line, leaf.digest)
        if not isinstance(entry, File) or entry.link is None:
            return leaf
        if not self._kept.isdisjoint((entry.link, *ancestors(entry.link))):
            return self._recorded(entry, leaf)
        alone = leaf.line[: leaf.line.rindex(_LINK)]
        if self._hardlinks.leads(entry.link, alone[len(leaf.name) :], leaf.digest):
            return self._recorded(entry, leaf)
        return leaf._replace(line=alone + b"\n")

    def _recorded(self, entry: File, leaf: "_Leaf") -> "_Leaf":
        """The line of a hardlink that stays one."""
        if self._record is not None and entry.link is not None:
            self._record.add(pair(entry.link, entry.path))
        return leaf

    def _count_run(self, run: Run) -> None:
        directories, files, symlinks, size, skipped = run.totals
        self._directories += directories
        self._files += files
        self._symlinks += symlinks
        self._bytes += size
        self.skipped += skipped

    def _count(self, listing: Listing) -> None:
        files, symlinks, size = leaf_totals(listing.leaves)
        self._directories += bool(listing.attributes)
        self._files += files
        self._symlinks += symlinks
        self._bytes += size


class _Leaf(NamedTuple):
    name: bytes
    """Escaped."""
    line: bytes
    digest: bytes


def _leaves(listing: Listing) -> Iterator[_Leaf]:
    """The lines of a listing, each with its digest."""
    files = 0
    for line in BytesIO(listing.leaves):
        place = DIGEST_BYTES * files
        count = count_files(line)
        digest = listing.digests[place : place + DIGEST_BYTES * count]
        files += count
        yield _Leaf(line[: line.index(b"\t")], line, digest)
