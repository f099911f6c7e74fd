"""The search for local files with the content of files to fetch.

Reads metadata and the status of single paths; reads no content, and changes nothing.  Searches in
this order: candidate paths, files of this tree that stay, the trees of `reuse_from`, other files
to fetch.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from huai_client.config import load as config
from huai_client.config.mirror import Mirror
from huai_client.diff.candidate import Candidate, Move
from huai_client.diff.files import paths, sizes, within, without
from huai_client.diff.renames import Renames
from huai_client.diff.reuse.matching import ANY_NUMBER, Matching, twins
from huai_client.diff.reuse.value import Reuse
from huai_client.metadata.commit import Commit
from huai_client.metadata.repository import Repository
from huai_client.state import state
from huai_client.state.paths import module_places
from huai_client.tree import PathError, View
from huai_client.tree.local_entry import stat_entry
from huai_schema.codec.listing import Listing
from huai_schema.entries import File
from huai_schema.errors import HuaiError
from huai_schema.layout.snapshot import Snapshot, decode_listing
from huai_schema.limits import DIGEST_BYTES
from huai_schema.paths import RelPath

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
        """Search for `mirror`; the modules of `reuse_from` are in the same state root."""
        self._module = mirror.config
        self._root = mirror.root

    def find(
        self, planned: PlannedFetches, view: View, commit: Commit, *, sure: bool
    ) -> dict[RelPath, Reuse]:
        """Return the sources, by the path of the file to fetch.

        Without `sure` only sources with a digest count.  Raises `UnknownModuleError` if
        `reuse_from` names a module that is not configured.
        """
        fetches = planned.fetches
        if not fetches:
            return {}
        may_share = self._module.duplicates == "hardlink"
        before = _paths_before(planned.moves)
        matching = Matching(fetches, planned.candidates, may_share=may_share)
        sources = {
            path: reuse._replace(source=before(reuse.source))
            for path, reuse in matching.find_sources().items()
        }
        search = _Search(fetches, sources, ANY_NUMBER if may_share else 0)
        if planned.entries < commit.info.totals.files:
            search.look(view, commit, before)
        for name in self._module.reuse_from:
            self._look_into(name, search)
        reuses = {**search.sources, **dict(twins(search.missing()))}
        if not sure or self._module.reuse_check == "digest":
            reuses = dict(_digests_only(reuses, fetches))
        return reuses

    def _look_into(self, name: str, search: "_Search") -> None:
        other = config.load(self._root).module(name)
        # An error in another module must not stop this one.
        with suppress(HuaiError), View(Path(other.dest)) as view:
            places = module_places(self._root, name)
            applied = state.load(places.state).applied
            if applied is not None:
                commit = Repository(places.repository, make=False).commit(applied)
                search.look(view, commit, lambda path: path, tree=other.dest)


class _Search:
    """The sources so far, and the files without one."""

    def __init__(self, fetches: Sequence[File], sources: dict[RelPath, Reuse], names: int) -> None:
        self.sources = sources
        self._names = names
        self._fetches = fetches

    def missing(self) -> Sequence[File]:
        """Return the files without a source, in the order of the plan."""
        sources = self.sources
        return without(self._fetches, sources) if sources else self._fetches

    def look(
        self, view: View, commit: Commit, before: Callable[[RelPath], RelPath], tree: str = ""
    ) -> None:
        """Search the files of `commit` in the tree of `view`, if that is worth its time.

        `before` returns the path before the plan renames directories.
        """
        if not worth_looking(sum(sizes(self.missing())), commit.info.totals.entries):
            return
        missing = [file for file in self.missing() if file.digest and file.size]
        if not worth_looking(sum(file.size for file in missing), commit.info.totals.entries):
            return
        digests = {file.digest for file in missing if file.digest}
        brought = set() if tree else {*paths(self._fetches)}
        by_digest: dict[bytes, Reuse] = {}
        for file in files_with(commit.snapshot, digests):
            path = before(file.path)
            if file.digest and file.path not in brought and _has_same_stat(view, path, file):
                names = 0 if tree else self._names
                by_digest[file.digest] = Reuse(path, file.mtime, names, sure=not tree, tree=tree)
                digests.discard(file.digest)
        self.sources.update(
            (file.path, by_digest[file.digest]) for file in missing if file.digest in by_digest
        )


def _digests_only(
    reuses: dict[RelPath, Reuse], fetches: Sequence[File]
) -> Iterable[tuple[RelPath, Reuse]]:
    for file in within(fetches, reuses):
        if file.digest is not None:
            yield file.path, reuses[file.path]._replace(sure=False)


def _paths_before(moves: list[Move]) -> Callable[[RelPath], RelPath]:
    renames = Renames(moves)
    return lambda path: renames.before(path) or path


def _has_same_stat(view: View, path: RelPath, file: File) -> bool:
    """Return True if a file with the size and time of `file` is at `path`."""
    try:
        local = stat_entry(view, path)
    except PathError:
        return False
    entry = local.entry if local else None
    return isinstance(entry, File) and (entry.size, entry.mtime) == (file.size, file.mtime)


def worth_looking(size: int, entries: int) -> bool:
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
    places = range(0, len(column), DIGEST_BYTES)
    return any(column[place : place + DIGEST_BYTES] in digests for place in places)
