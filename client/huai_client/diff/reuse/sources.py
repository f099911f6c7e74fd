"""Finding local files with the content of wanted ones.

Reads metadata and looks at single paths; reads no content, and changes nothing.  Looks in this
order: candidate paths; files of this tree that stay; the trees of `reuse_from`; other files that
are fetched.
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
"""Looking at an entry takes about as long as 50 to 200 bytes do at 50 MB/s; of what is new in
a mirror little is a copy of what stays, unless a release is copied, and that is much."""
FEW_ENTRIES = 10_000
"""Looking at so many takes some hundredths of a second, so it is always done."""


class Wanted(NamedTuple):
    """The files that a plan fetches, and the paths that it changes."""

    fetches: Sequence[File]
    entries: int
    """The files that it makes, with their hardlinks."""
    candidates: Sequence[Candidate]
    """The candidates of the comparison."""
    moves: list[Move]
    """Directories that are renamed first."""


class ReuseSources:
    """Finds sources for one module, as its configuration allows."""

    def __init__(self, mirror: Mirror) -> None:
        """The modules of `reuse_from` are in the same state root as `mirror`."""
        self._module = mirror.config
        self._root = mirror.root

    def find(
        self, wanted: Wanted, view: View, commit: Commit, *, sure: bool
    ) -> dict[RelPath, Reuse]:
        """The sources, by the path of the wanted file.

        Without `sure` only sources with a digest count.  Raises `UnknownModuleError` if
        `reuse_from` names a module that is not configured.
        """
        fetches = wanted.fetches
        if not fetches:
            return {}
        may_share = self._module.duplicates == "hardlink"
        before = _paths_before(wanted.moves)
        matching = Matching(fetches, wanted.candidates, may_share=may_share)
        found = {
            path: reuse._replace(source=before(reuse.source))
            for path, reuse in matching.found().items()
        }
        search = _Search(fetches, found, ANY_NUMBER if may_share else 0)
        if wanted.entries < commit.info.totals.files:
            search.look(view, commit, before)
        for name in self._module.reuse_from:
            self._look_into(name, search)
        reuses = {**search.found, **dict(twins(search.unfound()))}
        if not sure or self._module.reuse_check == "digest":
            reuses = dict(_digests_only(reuses, fetches))
        return reuses

    def _look_into(self, name: str, search: "_Search") -> None:
        other = config.load(self._root).module(name)
        # A fault in another module must not stop this one.
        with suppress(HuaiError), View(Path(other.dest)) as view:
            places = module_places(self._root, name)
            applied = state.load(places.state).applied
            if applied is not None:
                commit = Repository(places.repository, make=False).commit(applied)
                search.look(view, commit, lambda path: path, tree=other.dest)


class _Search:
    """The sources found so far, and the files without one."""

    def __init__(self, fetches: Sequence[File], found: dict[RelPath, Reuse], names: int) -> None:
        self.found = found
        self._names = names
        self._fetches = fetches

    def unfound(self) -> Sequence[File]:
        """In the order of the plan."""
        found = self.found
        return without(self._fetches, found) if found else self._fetches

    def look(
        self, view: View, commit: Commit, before: Callable[[RelPath], RelPath], tree: str = ""
    ) -> None:
        """Look for sources among the files of `commit` in the tree of `view`, if that is worth it.

        `before` says where a path is before the plan renames directories.
        """
        if not worth_looking(sum(sizes(self.unfound())), commit.info.totals.entries):
            return
        unfound = [file for file in self.unfound() if file.digest and file.size]
        if not worth_looking(sum(file.size for file in unfound), commit.info.totals.entries):
            return
        digests = {file.digest for file in unfound if file.digest}
        brought = set() if tree else {*paths(self._fetches)}
        known: dict[bytes, Reuse] = {}
        for file in files_with(commit.snapshot, digests):
            path = before(file.path)
            if file.digest and file.path not in brought and _stands(view, path, file):
                names = 0 if tree else self._names
                known[file.digest] = Reuse(path, file.mtime, names, sure=not tree, tree=tree)
                digests.discard(file.digest)
        self.found.update(
            (file.path, known[file.digest]) for file in unfound if file.digest in known
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


def _stands(view: View, path: RelPath, file: File) -> bool:
    """Whether a file with the size and time of `file` is at `path`."""
    try:
        found = stat_entry(view, path)
    except PathError:
        return False
    entry = found.entry if found else None
    return isinstance(entry, File) and (entry.size, entry.mtime) == (file.size, file.mtime)


def worth_looking(size: int, entries: int) -> bool:
    """Whether a transfer of `size` bytes would take longer than reading so many entries."""
    return size > 0 and (entries <= FEW_ENTRIES or size > BYTES_AN_ENTRY * entries)


def files_with(snapshot: Snapshot, digests: set[bytes]) -> Iterator[File]:
    """The files of `snapshot` that have one of `digests`.

    The caller may take digests out of the set while it goes on; it ends with the last one.
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
