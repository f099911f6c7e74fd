"""Candidates in the engine: a row for each, of which only a few become Python values.

The engine decides if a local file has the expected content.  If its digest is known, that decides:
the file was read, or all past snapshots with its size and time have the same digest.  Otherwise
size and time have to be right (rsync's rule).
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, overload

from huai_client.config.modes import DefaultMode, Reduced
from huai_client.diff.candidate import Candidate, Move, Remove
from huai_client.diff.selection import Selection
from huai_native import _native
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath

if TYPE_CHECKING:
    from huai_client.tree import View
    from huai_client.tree.owners import Names

SurveyedPath: TypeAlias = tuple[RelPath, Entry | None, Sequence[Entry]]
"""A path, its expected entry, and the entries of past snapshots."""


class SourceFile(NamedTuple):
    """A candidate with a local file, and the known facts about its content."""

    candidate: Candidate
    digest: bytes | None
    right: bool
    """True if it is the content that is expected at its path."""


class CandidateTable(Sequence[Candidate]):
    """A sequence of candidates in the order in which they were added."""

    def __init__(self, names: "Names | None" = None) -> None:
        """Make an empty table; `names` of users and groups are needed for a survey only."""
        self.engine = _native.Candidates(
            Candidate,
            (File, Directory, Symlink),
            Remove,
            (Reduced, DefaultMode),
            None if names is None else (names.user, names.group),
        )

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> "CandidateTable":
        """Return `candidates` as a table; a table is returned itself."""
        if isinstance(candidates, CandidateTable):
            return candidates
        table = cls()
        table.engine.extend(candidates)
        return table

    def add(self, places: Sequence[SurveyedPath]) -> None:
        """Add paths to survey (`View.survey`)."""
        self.engine.add(places)

    def compare(self, past: Selection, target: Selection) -> list[Move] | None:
        """Add the paths in which `past` differs from `target`; return the moves of directories.

        Entries that are unchanged in a moved directory get no row: the caller makes the moves.
        Call `engine.merge()` after the last comparison.  Returns None and adds nothing if the
        filters differ, or treat a directory differently at its two places: then compare entry by
        entry.
        """
        if past.rules != target.rules:
            return None
        rules = target.rules
        old, new = past.snapshot.arguments, target.snapshot.arguments
        moves = self.engine.compare(old, new, (rules.table, rules.modes.table))
        if moves is None:
            return None
        return [Move(RelPath(before), RelPath(after)) for before, after in moves]

    def expected_at(self, path: RelPath) -> tuple[bool, Entry | None]:
        """Return True and the expected entry if `path` is a candidate, else False and None.

        Call it after `engine.merge()`.
        """
        return self.engine.wanted(path)

    def __len__(self) -> int:
        return len(self.engine)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> list[Candidate]: ...
    def __getitem__(self, index: int | slice) -> Candidate | list[Candidate]:
        if isinstance(index, slice):
            return [self.engine[each] for each in range(*index.indices(len(self)))]
        candidate: Candidate = self.engine[index]
        return candidate

    def __iter__(self) -> Iterator[Candidate]:
        return map(self.engine.__getitem__, range(len(self)))

    def select_candidates(self, paths: AbstractSet[RelPath]) -> set[RelPath]:
        """Return those of `paths` that are candidates."""
        return {RelPath(path) for path in self.engine.having(paths)}

    def sources(self, sizes: AbstractSet[int]) -> list[SourceFile]:
        """Return the candidates with a local file of one of these sizes."""
        return [SourceFile(*each) for each in self.engine.files(sizes)]


def compare_path(view: "View", path: RelPath, expected: Entry | None) -> Candidate:
    """Return the candidate of one path, with its local entry compared; raises `PathError`."""
    table = CandidateTable(view.names)
    table.add([(path, expected, ())])
    view.survey(table.engine)
    return table[0]
