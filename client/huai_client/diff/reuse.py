"""The search for local files with the content of files to fetch, by the rules of docs/SAFETY.md.

Reads metadata and the status of single paths; reads no content, and changes nothing.  Searches in
this order: candidate paths, files of this tree that stay, the trees of `reuse_from`, other files
to fetch.  Files match by digest; without a digest by name, size and time, if only one file has
these.  Empty files are left out.  The cost grows with the change.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

from huai_client.config import load as config
from huai_client.config.mirror import Mirror
from huai_client.diff.candidate import Candidate, Move, Reuse
from huai_client.diff.files import digests, paths, sizes, within, without
from huai_client.diff.table import CandidateTable, SourceFile
from huai_client.metadata.commit import Commit
from huai_client.metadata.repository import Repository
from huai_client.state import state
from huai_client.state.paths import module_places
from huai_client.tree import View
from huai_native import _native
from huai_schema.codec.listing import Listing
from huai_schema.entries import File
from huai_schema.errors import HuaiError
from huai_schema.layout.snapshot import Snapshot, decode_listing
from huai_schema.limits import DIGEST_BYTES
from huai_schema.paths import RelPath, basename

_Name: TypeAlias = tuple[bytes, int, int]
"""The last component, size and time of a file."""


ANY_NUMBER = 1 << 32
"""A link count above that of any inode."""


class _LocalFile(NamedTuple):
    path: RelPath
    file: File
    source: SourceFile
    goes: bool
    """True if the plan removes its name, or gives it new content."""


class Matching:
    """A search among the files at candidate paths."""

    def __init__(
        self, fetches: Sequence[File], candidates: Iterable[Candidate], *, may_share: bool
    ) -> None:
        """Search for the content of `fetches`; with `may_share` equal files may share an inode."""
        self._fetches = fetches
        self._may_share = may_share
        # In a large change most candidates are not sources: only those of equal size are listed.
        needed_sizes = {size for size in sizes(fetches) if size}
        present = CandidateTable.of(candidates).sources(needed_sizes) if needed_sizes else []
        replaced = {*paths(fetches)} if present else set()
        self._local = [
            _LocalFile(candidate.path, candidate.have, source, _goes(candidate, replaced))
            for source in present
            if isinstance((candidate := source.candidate).have, File)
        ]
        self._names = Counter([local.source.candidate.inode for local in self._local if local.goes])
        self._changing = {
            local.source.candidate.inode
            for local in self._local
            if not local.goes and local.source.candidate.differing
        }
        """Inodes whose attributes change: a file that shares one would change too."""
        self._claimed: set[tuple[int, int]] = set()

    def find_sources(self) -> dict[RelPath, Reuse]:
        """Return the sources, by the path of the file to fetch."""
        if not self._local:
            return {}
        sources = dict(self._by_digest())
        sources.update(self._by_name(without(self._fetches, sources)))
        return sources

    def _by_digest(self) -> Iterator[tuple[RelPath, Reuse]]:
        """Yield for files a local source of the same digest, preferably one that the plan drops.

        A file that is right here is its own source.
        """
        needed = {*digests(self._fetches)}
        removed: dict[bytes, list[_LocalFile]] = defaultdict(list)
        by_digest: dict[bytes, _LocalFile] = {}
        for local in reversed(self._local):
            digest = local.source.digest
            if digest is not None and digest in needed:
                by_digest[digest] = local
                if local.goes:
                    removed[digest].append(local)
        own = {local.path: local for local in self._local}
        for path, digest in zip(paths(self._fetches), digests(self._fetches), strict=True):
            mine = own.get(path)
            if mine is not None and digest and mine.source.right:
                # The file needs a separate inode.
                yield path, Reuse(path, mine.file.mtime, sure=False)
            elif digest in by_digest:
                yield path, self._reuse(self._next(removed[digest]) or by_digest[digest])

    def _next(self, removed: list[_LocalFile]) -> _LocalFile | None:
        """Remove files from the list up to one with a free inode; return it, or None."""
        while removed:
            local = removed.pop()
            if local.source.candidate.inode not in self._claimed:
                return local
        return None

    def _by_name(self, fetches: Sequence[File]) -> Iterator[tuple[RelPath, Reuse]]:
        """Yield the new path of each file that seems to be moved, and its old file as the source.

        That is one file removed, and one added elsewhere under the same name.
        """
        removed: dict[_Name, list[_LocalFile]] = defaultdict(list)
        for local in self._local:
            if local.source.candidate.expected is None:
                removed[_match_key(local.file)].append(local)
        if not removed:
            return
        added: dict[_Name, list[File]] = defaultdict(list)
        for file in fetches:
            if file.size and _match_key(file) in removed:
                added[_match_key(file)].append(file)
        for name, files in added.items():
            if len(files) == len(removed[name]) == 1 and _may_be(removed[name][0], files[0]):
                reuse = self._reuse(removed[name][0])
                yield files[0].path, reuse._replace(sure=files[0].digest is None)

    def _reuse(self, local: _LocalFile) -> Reuse:
        """Return a local file as a source; the first use of a file that goes claims its inode."""
        inode = local.source.candidate.inode
        most_links = self._names[inode] if local.goes and inode not in self._claimed else 0
        self._claimed.add(inode)
        if self._may_share:
            most_links = 0 if inode in self._changing else ANY_NUMBER
        return Reuse(local.path, local.file.mtime, most_links=most_links)


def twins(fetches: Sequence[File]) -> Iterator[tuple[RelPath, Reuse]]:
    """Yield each file to fetch whose content an earlier one has, with that one as its source."""
    for row, first in _native.find_twins(fetches):
        source = fetches[first]
        yield fetches[row].path, Reuse(source.path, source.mtime, twin=True)


def _goes(candidate: Candidate, replaced: Container[RelPath]) -> bool:
    """Return True if a name is removed, or gets new content directly or by a hardlink."""
    expected = candidate.expected
    if expected is None or candidate.path in replaced:
        return True
    return isinstance(expected, File) and expected.link in replaced


def _match_key(file: File) -> _Name:
    return basename(file.path), file.size, file.mtime


def _may_be(local: _LocalFile, fetched: File) -> bool:
    """Return True if the local file has no known digest, so that it can be compared.

    If `fetched` has no digest, True if a past snapshot has the local size and time at its path.
    """
    if fetched.digest is not None:
        return local.source.digest is None
    return any(
        isinstance(entry, File) and (entry.size, entry.mtime) == (local.file.size, local.file.mtime)
        for entry in local.source.candidate.past
    )


BYTES_AN_ENTRY = 1000
"""The bytes to fetch, for each entry of the tree, from which a search is worth its time.

Reading an entry takes about as long as 50 to 200 bytes do at 50 MB/s, and few new files of a
mirror are copies of others, unless a whole release is copied."""
FEW_ENTRIES = 10_000
"""The number of entries that are always read: it takes some hundredths of a second."""


class PlannedFetches(NamedTuple):
    """The files that a plan fetches, and the paths that it changes."""

    fetches: Sequence[File]
    entries: int
    """The number of files that the plan makes, hardlinks included."""
    candidates: Sequence[Candidate]
    """The candidates of the comparison."""
    moves: list[Move]
    """Directories to rename first."""


class ReuseSources:
    """A search for sources for one module, as its configuration allows."""

    def __init__(self, mirror: Mirror) -> None:
        """Search on behalf of `mirror`; the modules of `reuse_from` are in the same state root."""
        self._module = mirror.config
        self._root = mirror.root

    def find(
        self, planned: PlannedFetches, view: View, commit: Commit, *, sure: bool
    ) -> dict[RelPath, Reuse]:
        """Return the sources, by the path of the file to fetch.

        Without `sure` only files with a digest get a source, which is read to prove it.  Errors in
        another module's tree are ignored.  Raises `UnknownModuleError` if `reuse_from` names a
        module that is not configured.
        """
        fetches = planned.fetches
        if not fetches:
            return {}
        may_share = self._module.duplicates == "hardlink"
        renames = _native.Renames(planned.moves)

        def before(path: RelPath) -> RelPath:
            """Return the path before the renames."""
            # No source is at a free path: a directory moves only if nothing else is below it.
            return RelPath(renames.before(path) or path)

        matching = Matching(fetches, planned.candidates, may_share=may_share)
        sources = {
            path: reuse._replace(source=before(reuse.source))
            for path, reuse in matching.find_sources().items()
        }
        search = _Search(fetches, sources, ANY_NUMBER if may_share else 0)
        if planned.entries < commit.info.totals.files:
            search.add_from(view, commit, before)
        for name in self._module.reuse_from:
            self._search_module(name, search)
        reuses = {**search.sources, **dict(twins(search.missing()))}
        if not sure or self._module.reuse_check == "digest":
            reuses = dict(_digests_only(reuses, fetches))
        return reuses

    def _search_module(self, name: str, search: "_Search") -> None:
        """Add sources from another module's applied tree; none if that cannot be read."""
        other = config.load(self._root).module(name)
        # An error in another module must not stop this one.
        with suppress(HuaiError), View(Path(other.dest)) as view:
            places = module_places(self._root, name)
            applied = state.load(places.state).applied
            if applied is not None:
                commit = Repository(places.repository, make=False).commit(applied)
                search.add_from(view, commit, lambda path: path, tree=other.dest)


class _Search:
    """A search in whole trees, for the files that have no source yet."""

    def __init__(
        self, fetches: Sequence[File], sources: dict[RelPath, Reuse], most_links: int
    ) -> None:
        """Start with the known `sources`, by path; `most_links`: see `Reuse`."""
        self.sources = sources
        self._most_links = most_links
        self._fetches = fetches

    def missing(self) -> Sequence[File]:
        """Return the files without a source, in the order of the plan."""
        sources = self.sources
        return without(self._fetches, sources) if sources else self._fetches

    def add_from(
        self, view: View, commit: Commit, before: Callable[[RelPath], RelPath], tree: str = ""
    ) -> None:
        """Add sources among the files of `commit` in the tree of `view`, if `search_pays_off`.

        `before` returns the path before the plan renames directories.
        """
        if not search_pays_off(sum(sizes(self.missing())), commit.info.totals.entries):
            return
        missing = [file for file in self.missing() if file.digest and file.size]
        if not search_pays_off(sum(file.size for file in missing), commit.info.totals.entries):
            return
        digests = {file.digest for file in missing if file.digest}
        brought = set() if tree else {*paths(self._fetches)}
        by_digest: dict[bytes, Reuse] = {}
        for file in files_with(commit.snapshot, digests):
            path = before(file.path)
            present = file.path not in brought and view.has_file(path, file.size, file.mtime)
            if file.digest and present:
                most_links = 0 if tree else self._most_links
                by_digest[file.digest] = Reuse(
                    path, file.mtime, most_links, sure=not tree, tree=tree
                )
                digests.discard(file.digest)
        self.sources.update(
            (file.path, by_digest[file.digest]) for file in missing if file.digest in by_digest
        )


def _digests_only(
    reuses: dict[RelPath, Reuse], fetches: Sequence[File]
) -> Iterable[tuple[RelPath, Reuse]]:
    """Yield the sources of files with a digest, to be verified."""
    for file in within(fetches, reuses):
        if file.digest is not None:
            yield file.path, reuses[file.path]._replace(sure=False)


def search_pays_off(size: int, entries: int) -> bool:
    """Return True if a transfer of `size` bytes takes longer than reading so many entries."""
    return size > 0 and (entries <= FEW_ENTRIES or size > BYTES_AN_ENTRY * entries)


def files_with(snapshot: Snapshot, digests: set[bytes]) -> Iterator[File]:
    """Yield the files of `snapshot` that have one of `digests`.

    The caller may remove digests from the set meanwhile; the search ends when it is empty.
    """
    for listing in snapshot.listings():
        if not digests:
            return
        if listing.digests and _holds_any(listing, digests):
            for entry in decode_listing(listing):
                if isinstance(entry, File) and entry.digest in digests:
                    yield entry


def _holds_any(listing: Listing, digests: set[bytes]) -> bool:
    column = listing.digests
    offsets = range(0, len(column), DIGEST_BYTES)
    return any(column[offset : offset + DIGEST_BYTES] in digests for offset in offsets)
