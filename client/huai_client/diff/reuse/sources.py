"""Where the content of wanted files stands already.

Reads metadata and looks at single paths; reads no content, and changes nothing.  In this
order: paths that were compared; files of this tree that stay; the trees of `reuse_from`; files
that come anyway.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from huai_client import config
from huai_client.diff.candidate import Candidate, Move
from huai_client.diff.reuse.digests import files_with, worth_looking
from huai_client.diff.reuse.matching import ANY_NUMBER, Matching, twins
from huai_client.diff.reuse.value import Reuse
from huai_client.metadata.commit import Commit
from huai_client.metadata.repository import Repository
from huai_client.mirror import Mirror
from huai_client.state import state
from huai_client.state.paths import module_places
from huai_client.tree import PathError, View
from huai_client.tree.local_entry import stat_entry
from huai_schema.entries import File
from huai_schema.errors import HuaiError
from huai_schema.paths import RelPath, ancestors


class Wanted(NamedTuple):
    """Files that a plan has to bring."""

    fetches: list[File]
    entries: int
    """Files that it makes, hardlinks included."""
    candidates: list[Candidate]
    """The paths that were compared."""
    moves: list[Move]
    """Directories that are renamed first."""


class ReuseSources:
    """What the configuration of one module lets be reused."""

    def __init__(self, mirror: Mirror) -> None:
        """The neighbours of `mirror` stand beside it in its root."""
        self._module = mirror.config
        self._root = mirror.root

    def find(
        self, wanted: Wanted, view: View, commit: Commit, *, sure: bool
    ) -> dict[RelPath, Reuse]:
        """By path of a wanted file, where its content is.

        Without `sure` nothing but a digest is believed.  `UnknownModuleError` if `reuse_from`
        names a module that is not configured.
        """
        fetches = wanted.fetches
        if not fetches:
            return {}
        may_share = self._module.duplicates == "hardlink"
        matching = Matching(fetches, wanted.candidates, may_share=may_share)
        search = _Search(fetches, matching.found(), ANY_NUMBER if may_share else 0)
        if wanted.entries < commit.info.totals.files:
            search.look(view, commit, _paths_before(wanted.moves))
        for name in self._module.reuse_from:
            self._look_into(name, search)
        reuses = {**search.found, **dict(twins(search.unfound()))}
        if not sure or self._module.reuse_check == "digest":
            reuses = dict(_digests_only(reuses, fetches))
        return reuses

    def _look_into(self, name: str, search: "_Search") -> None:
        other = config.load(self._root).module(name)
        # What is wrong with another module is no reason to stop this one.
        with suppress(HuaiError), View(Path(other.dest)) as view:
            places = module_places(self._root, name)
            applied = state.load(places.state).applied
            if applied is not None:
                commit = Repository(places.repository, make=False).commit(applied)
                search.look(view, commit, lambda path: path, tree=other.dest)


class _Search:
    """The files that nothing was found for, and what was found."""

    def __init__(self, fetches: list[File], found: dict[RelPath, Reuse], names: int) -> None:
        self.found = found
        self._names = names
        self._fetches = fetches

    def unfound(self) -> list[File]:
        """In the order of the plan."""
        return [file for file in self._fetches if file.path not in self.found]

    def look(
        self, view: View, commit: Commit, before: Callable[[RelPath], RelPath], tree: str = ""
    ) -> None:
        """Look for files of `commit` that stand in `view`, if that is worth it.

        `before` says where a path is until directories are renamed.
        """
        unfound = [file for file in self.unfound() if file.digest and file.size]
        if not worth_looking(sum(file.size for file in unfound), commit.info.totals.entries):
            return
        digests = {file.digest for file in unfound if file.digest}
        brought = set() if tree else {file.path for file in self._fetches}
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
    reuses: dict[RelPath, Reuse], fetches: list[File]
) -> Iterable[tuple[RelPath, Reuse]]:
    for file in fetches:
        if file.digest is not None and file.path in reuses:
            yield file.path, reuses[file.path]._replace(sure=False)


def _paths_before(moves: list[Move]) -> Callable[[RelPath], RelPath]:
    sources = {move.new: move.old for move in moves}

    def before(path: RelPath) -> RelPath:
        for above in ancestors(path) if sources else ():
            if above in sources:
                return RelPath(sources[above] + path[len(above) :])
        return path

    return before


def _stands(view: View, path: RelPath, file: File) -> bool:
    """Whether a file with the size and time of `file` is at `path`."""
    try:
        found = stat_entry(view, path)
    except PathError:
        return False
    entry = found.entry if found else None
    return isinstance(entry, File) and (entry.size, entry.mtime) == (file.size, file.mtime)
