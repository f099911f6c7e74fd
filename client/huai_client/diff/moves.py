"""The paths in which past snapshots differ from the wanted one, and what can be renamed whole.

Reads metadata; looks into the tree only to see whether a directory is where a snapshot said.
Rule: a directory is renamed only if nothing else is to happen in it, neither where it was
nor where it goes; otherwise its entries are taken one by one, and what is there is kept.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import NamedTuple

from huai_client.diff.candidate import Move
from huai_client.diff.selection import Selection
from huai_client.diff.selections import diff_selections
from huai_client.tree import View
from huai_client.tree.local_entry import stat_entry
from huai_schema.diff.changes import Change
from huai_schema.entries import Directory, Entry, File
from huai_schema.paths import RelPath, ancestors, parent


def anywhere(_old: RelPath, _new: RelPath) -> bool:
    """Nothing forbids a move."""
    return True


def nowhere(_old: RelPath, _new: RelPath) -> bool:
    """Everything does."""
    return False


class _PastMove(NamedTuple):
    past: Selection
    old: RelPath
    new: RelPath


class ChangedPaths:
    """The union of several differences, by path."""

    def __init__(
        self,
        view: View,
        past: Iterable[Selection],
        wanted: Selection,
        may_move: Callable[[RelPath, RelPath], bool] = anywhere,
    ) -> None:
        """Compare each of `past` with `wanted`; `may_move` says what may be renamed whole."""
        self._view = view
        self._may_move = may_move
        self._wanted = wanted
        self.paths: dict[RelPath, Entry | None] = {}
        """What each path should be; None: nothing."""
        self.past: dict[RelPath, list[Entry]] = {}
        """What the past snapshots said of those paths."""
        moves: list[_PastMove] = []
        for selection in past:
            for difference in diff_selections(selection, wanted):
                if isinstance(difference, Change):
                    self._add(difference)
                else:
                    moves.append(_PastMove(selection, difference.old, difference.new))
        self.parents = {parent(path) for move in moves for path in (move.old, move.new)}
        """The directories in which something happens."""
        self.moves = self._settle(moves)
        self.parents |= {parent(path) for path in self.paths if path}
        self.vacated = {move.old for move in self.moves}
        """What stands there will be gone before anything is put there."""

    def _add(self, change: Change) -> None:
        self.paths[change.path] = change.new or self.paths.get(change.path)
        if change.old is not None:
            self.past.setdefault(change.path, []).append(change.old)

    def _settle(self, moves: list[_PastMove]) -> list[Move]:
        """Decide what is renamed; what is not may hinder another, so until all agree."""
        possible = self._possible(moves)
        given_up = {move.new for move in moves} - {move.new for move in possible}
        for _ in range(len(possible) + 1):
            for move in moves:
                if move.new in given_up:
                    self._expand(move)
            touched = sorted({*self.paths, *(path for move in possible for path in move)})
            given_up = {move.new for move in possible if self._hindered(move, possible, touched)}
            possible = [move for move in possible if move.new not in given_up]
        return possible

    def _possible(self, moves: list[_PastMove]) -> list[Move]:
        """One for each target where nothing is yet, and whose directory is in one place."""
        found: list[Move] = []
        for target in dict.fromkeys(move.new for move in moves):
            sources = {move.old for move in moves if move.new == target}
            present = [path for path in sources if self._is_directory(path)]
            if len(present) == 1 and stat_entry(self._view, target) is None:
                found.append(Move(present[0], target))
        return found

    def _hindered(self, move: Move, possible: list[Move], touched: list[RelPath]) -> bool:
        """Whether anything else is to happen to the directory, or to what it is in or goes to."""
        vacant = self.paths.get(move.old)
        return (
            _any_below(move.old, touched)
            or _any_below(move.new, touched)
            or move.new in self.paths
            or isinstance(vacant, Directory)
            or sum(other.old == move.old for other in possible) > 1
            or any(_is_leaf(self.paths.get(above)) for above in ancestors(move.old))
            or not self._may_move(move.old, move.new)
            or self._links_out(move.new)
        )

    def _links_out(self, new: RelPath) -> bool:
        """Whether a file in it is a hardlink of one outside: another one than before."""
        inside = new + b"/"
        return any(
            isinstance(entry, File) and entry.link and not entry.link.startswith(inside)
            for entry in self._wanted.linked_below(new)
        )

    def _is_directory(self, path: RelPath) -> bool:
        found = stat_entry(self._view, path)
        return found is not None and isinstance(found.entry, Directory)

    def _expand(self, move: _PastMove) -> None:
        """A move as what it is for each path: gone there, new here."""
        for entry in move.past.entries_below(move.old):
            self._add(Change(entry.path, entry, None))
        for entry in self._wanted.entries_below(move.new):
            self._add(Change(entry.path, None, entry))


def gone(past: Iterable[Selection], wanted: Selection) -> set[RelPath]:
    """What any of `past` named, and `wanted` does not."""
    paths: set[RelPath] = set()
    kept: set[RelPath] = set()
    for selection in past:
        for difference in diff_selections(selection, wanted):
            if not isinstance(difference, Change):
                paths |= {entry.path for entry in selection.entries_below(difference.old)}
            elif difference.new is None:
                paths.add(difference.path)
            else:
                kept.add(difference.path)
    return paths - kept


def _any_below(path: RelPath, among: list[RelPath]) -> bool:
    """Whether a sorted list holds anything in the directory `path`."""
    index = bisect_right(among, path + b"/")
    return index < len(among) and among[index].startswith(path + b"/")


def _is_leaf(entry: Entry | None) -> bool:
    return entry is not None and not isinstance(entry, Directory)
