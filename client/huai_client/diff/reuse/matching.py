"""Finding the content of wanted files at candidate paths, or in another wanted file.

Pure.  By digest; without a digest by name, size and time, if only one file has these.  Empty files
are left out.  Costs what changed.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from huai_client.diff.candidate import Candidate
from huai_client.diff.files import digests, paths, sizes, without
from huai_client.diff.reuse.value import Reuse
from huai_client.diff.table import CandidateTable, Source
from huai_native import _native
from huai_schema.entries import File
from huai_schema.paths import RelPath, basename

_Name: TypeAlias = tuple[bytes, int, int]
"""Last component, size, time."""


ANY_NUMBER = 1 << 32
"""More names than any inode has."""


class _Here(NamedTuple):
    """A local file."""

    path: RelPath
    file: File
    source: Source
    goes: bool
    """Whether the plan removes its name, or gives it new content."""


class Matching:
    """The files at candidate paths, as sources."""

    def __init__(
        self, fetches: Sequence[File], candidates: Iterable[Candidate], *, may_share: bool
    ) -> None:
        """`fetches` are the files to find; `may_share`: equal files may share an inode."""
        self._fetches = fetches
        self._may_share = may_share
        # Of a large change most candidates are no source: content of equal size is looked for.
        wanted = {size for size in sizes(fetches) if size}
        present = CandidateTable.of(candidates).sources(wanted) if wanted else []
        replaced = {*paths(fetches)} if present else set()
        self._here = [
            _Here(each.path, each.have, source, _goes(each, replaced))
            for source in present
            if isinstance((each := source.candidate).have, File)
        ]
        self._names = Counter([each.source.candidate.inode for each in self._here if each.goes])
        self._changing = {
            each.source.candidate.inode
            for each in self._here
            if not each.goes and each.source.candidate.differing
        }
        """Inodes whose attributes change: a file that shares one would change, too."""
        self._claimed: set[tuple[int, int]] = set()

    def found(self) -> dict[RelPath, Reuse]:
        """The sources, by the path of the wanted file."""
        if not self._here:
            return {}
        found = dict(self._by_digest())
        found.update(self._by_name(without(self._fetches, found)))
        return found

    def _by_digest(self) -> Iterator[tuple[RelPath, Reuse]]:
        wanted = {*digests(self._fetches)}
        going: dict[bytes, list[_Here]] = defaultdict(list)
        known: dict[bytes, _Here] = {}
        for here in reversed(self._here):
            digest = here.source.digest
            if digest is not None and digest in wanted:
                known[digest] = here
                if here.goes:
                    going[digest].append(here)
        own = {here.path: here for here in self._here}
        for path, digest in zip(paths(self._fetches), digests(self._fetches), strict=True):
            mine = own.get(path)
            if mine is not None and digest and mine.source.right:
                # It needs an inode of its own.
                yield path, Reuse(path, mine.file.mtime, sure=False)
            elif digest in known:
                yield path, self._reuse(self._next(going[digest]) or known[digest])

    def _next(self, going: list[_Here]) -> _Here | None:
        while going:
            here = going.pop()
            if here.source.candidate.inode not in self._claimed:
                return here
        return None

    def _by_name(self, fetches: Sequence[File]) -> Iterator[tuple[RelPath, Reuse]]:
        """Find moves: a file that goes away, and comes back elsewhere under the same name."""
        gone: dict[_Name, list[_Here]] = defaultdict(list)
        for here in self._here:
            if here.source.candidate.wanted is None:
                gone[_name(here.file)].append(here)
        if not gone:
            return
        come: dict[_Name, list[File]] = defaultdict(list)
        for file in fetches:
            if file.size and _name(file) in gone:
                come[_name(file)].append(file)
        for name, files in come.items():
            if len(files) == len(gone[name]) == 1 and _may_be(gone[name][0], files[0]):
                reuse = self._reuse(gone[name][0])
                yield files[0].path, reuse._replace(sure=files[0].digest is None)

    def _reuse(self, here: _Here) -> Reuse:
        """The first user of a source that goes may take over its inode; the others get copies."""
        inode = here.source.candidate.inode
        names = self._names[inode] if here.goes and inode not in self._claimed else 0
        self._claimed.add(inode)
        if self._may_share:
            names = 0 if inode in self._changing else ANY_NUMBER
        return Reuse(here.path, here.file.mtime, names=names)


def twins(fetches: Sequence[File]) -> Iterator[tuple[RelPath, Reuse]]:
    """Wanted files with the content of another wanted file, which is their source."""
    for place, first in _native.find_twins(fetches):
        source = fetches[first]
        yield fetches[place].path, Reuse(source.path, source.mtime, twin=True)


def _goes(candidate: Candidate, replaced: Container[RelPath]) -> bool:
    """Whether a name goes, gets new content, or becomes a hardlink of a file that does."""
    wanted = candidate.wanted
    if wanted is None or candidate.path in replaced:
        return True
    return isinstance(wanted, File) and wanted.link in replaced


def _name(file: File) -> _Name:
    return basename(file.path), file.size, file.mtime


def _may_be(here: _Here, wanted: File) -> bool:
    """Whether the local file can be `wanted`: no digest says otherwise, or a snapshot has it."""
    if wanted.digest is not None:
        return here.source.digest is None
    return any(
        isinstance(entry, File) and (entry.size, entry.mtime) == (here.file.size, here.file.mtime)
        for entry in here.source.candidate.past
    )
