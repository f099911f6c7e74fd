"""The search for the content of files to fetch at candidate paths, or in another such file.

Pure.  Files match by digest; without a digest by name, size and time, if only one file has these.
Empty files are left out.  The cost grows with the change.
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
"""The last component, size and time of a file."""


ANY_NUMBER = 1 << 32
"""A link count above that of any inode."""


class _LocalFile(NamedTuple):
    """A local file at a candidate path."""

    path: RelPath
    file: File
    source: Source
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
        while removed:
            local = removed.pop()
            if local.source.candidate.inode not in self._claimed:
                return local
        return None

    def _by_name(self, fetches: Sequence[File]) -> Iterator[tuple[RelPath, Reuse]]:
        """Find moves: a file that is removed, and added elsewhere under the same name."""
        removed: dict[_Name, list[_LocalFile]] = defaultdict(list)
        for local in self._local:
            if local.source.candidate.expected is None:
                removed[_name(local.file)].append(local)
        if not removed:
            return
        added: dict[_Name, list[File]] = defaultdict(list)
        for file in fetches:
            if file.size and _name(file) in removed:
                added[_name(file)].append(file)
        for name, files in added.items():
            if len(files) == len(removed[name]) == 1 and _may_be(removed[name][0], files[0]):
                reuse = self._reuse(removed[name][0])
                yield files[0].path, reuse._replace(sure=files[0].digest is None)

    def _reuse(self, local: _LocalFile) -> Reuse:
        """Return a source; the first user of one that goes may take over its inode."""
        inode = local.source.candidate.inode
        names = self._names[inode] if local.goes and inode not in self._claimed else 0
        self._claimed.add(inode)
        if self._may_share:
            names = 0 if inode in self._changing else ANY_NUMBER
        return Reuse(local.path, local.file.mtime, names=names)


def twins(fetches: Sequence[File]) -> Iterator[tuple[RelPath, Reuse]]:
    """Yield files to fetch that have the content of another one, which is their source."""
    for place, first in _native.find_twins(fetches):
        source = fetches[first]
        yield fetches[place].path, Reuse(source.path, source.mtime, twin=True)


def _goes(candidate: Candidate, replaced: Container[RelPath]) -> bool:
    """Return True if a name is removed, or gets new content directly or by a hardlink."""
    expected = candidate.expected
    if expected is None or candidate.path in replaced:
        return True
    return isinstance(expected, File) and expected.link in replaced


def _name(file: File) -> _Name:
    return basename(file.path), file.size, file.mtime


def _may_be(local: _LocalFile, fetched: File) -> bool:
    """Return True if nothing excludes that the local file has the content of `fetched`."""
    if fetched.digest is not None:
        return local.source.digest is None
    return any(
        isinstance(entry, File) and (entry.size, entry.mtime) == (local.file.size, local.file.mtime)
        for entry in local.source.candidate.past
    )
