"""Candidates in the engine: a row for each, of which only few become values of Python.

The engine knows whether a local file has the wanted content.  If its digest is known, that decides:
it was read, or all past snapshots that have its size and time have the same digest.  Else the size
has to be right, and the time, too (rsync's own rule).
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, overload

from huai_client.config.modes import Kept, Reduced
from huai_client.diff.candidate import Candidate, Move, Remove
from huai_client.diff.selection import Selection
from huai_native import _native
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath

if TYPE_CHECKING:
    from huai_client.tree import View
    from huai_client.tree.owners import Names

Place: TypeAlias = tuple[RelPath, Entry | None, Sequence[Entry]]
"""A path, what should be there (None: nothing), and the entries of past snapshots."""


class Source(NamedTuple):
    """A candidate with a local file, and what is known of the content of that file."""

    candidate: Candidate
    digest: bytes | None
    right: bool
    """Whether it is the content that is wanted at its path."""


class CandidateTable(Sequence[Candidate]):
    """Candidates in the order in which they were added."""

    def __init__(self, names: "Names | None" = None) -> None:
        """`names` of users and groups; None: nothing is added that has to be looked at."""
        self.engine = _native.Candidates(
            Candidate,
            (File, Directory, Symlink),
            Remove,
            (Reduced, Kept),
            None if names is None else (names.user, names.group),
        )

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> "CandidateTable":
        """`candidates` as a table, if they are none yet."""
        if isinstance(candidates, CandidateTable):
            return candidates
        table = cls()
        table.engine.extend(candidates)
        return table

    def add(self, places: Sequence[Place]) -> None:
        """Add paths to look at (`View.survey`)."""
        self.engine.add(places)

    def compare(self, past: Selection, wanted: Selection) -> list[Move] | None:
        """Add all paths in which `past` differs from `wanted`; returns the directories that moved.

        None, and nothing is added: it has to be compared entry by entry, because the filters differ
        or treat a directory differently at its two places.
        """
        if past.rules != wanted.rules:
            return None
        rules = wanted.rules
        old, new = (
            (snapshot.reader, snapshot.tree, snapshot.limit)
            for snapshot in (past.snapshot, wanted.snapshot)
        )
        moves = self.engine.compare(old, new, (rules.table, rules.modes.table))
        if moves is None:
            return None
        return [Move(RelPath(before), RelPath(after)) for before, after in moves]

    def wanted(self, path: RelPath) -> tuple[bool, Entry | None]:
        """Whether `path` is a candidate, and what is wanted there; after `engine.merge()`."""
        return self.engine.wanted(path)

    def __len__(self) -> int:
        return len(self.engine)

    @overload
    def __getitem__(self, place: int) -> Candidate: ...
    @overload
    def __getitem__(self, place: slice) -> list[Candidate]: ...
    def __getitem__(self, place: int | slice) -> Candidate | list[Candidate]:
        if isinstance(place, slice):
            return [self.engine[each] for each in range(*place.indices(len(self)))]
        found: Candidate = self.engine[place]
        return found

    def __iter__(self) -> Iterator[Candidate]:
        return map(self.engine.__getitem__, range(len(self)))

    def having(self, paths: AbstractSet[RelPath]) -> set[RelPath]:
        """Those of `paths` that are candidates."""
        return {RelPath(path) for path in self.engine.having(paths)}

    def sources(self, sizes: AbstractSet[int]) -> list[Source]:
        """The candidates with a file of one of these sizes."""
        return [Source(*each) for each in self.engine.files(sizes)]


def compare_path(view: "View", path: RelPath, wanted: Entry | None) -> Candidate:
    """What is at a single path, compared with `wanted`.

    Raises:
        PathError: `path` cannot be read, or the leader of the hardlink that is wanted.
    """
    table = CandidateTable(view.names)
    table.add([(path, wanted, ())])
    view.survey(table.engine)
    return table[0]
