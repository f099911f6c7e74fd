"""The paths in which past snapshots differ from the wanted one, and directories to rename.

Reads metadata; reads the tree only to see whether a directory is where a snapshot has it.
Rule: a directory is renamed as a whole only if nothing else changes in it, at its old path and its
new one; otherwise its entries are candidates one by one, and files that are there are kept.
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
    """Allow every move."""
    return True


def nowhere(_old: RelPath, _new: RelPath) -> bool:
    """Allow no move."""
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
        """The entries of the past snapshots at those paths."""
        moves: list[_PastMove] = []
        for selection in past:
            for difference in diff_selections(selection, wanted):
                if isinstance(difference, Change):
                    self._add(difference)
                else:
                    moves.append(_PastMove(selection, difference.old, difference.new))
        self.parents = {parent(path) for move in moves for path in (move.old, move.new)}
        """The directories in which a name changes."""
        self.moves = self._settle(moves)
        self.parents |= {parent(path) for path in self.paths if path}
        self.vacated = {move.old for move in self.moves}
        """The old paths of moved directories, which are free before files are published."""

    def _add(self, change: Change) -> None:
        self.paths[change.path] = change.new or self.paths.get(change.path)
        if change.old is not None:
            self.past.setdefault(change.path, []).append(change.old)

    def _settle(self, moves: list[_PastMove]) -> list[Move]:
        """Decide what is renamed; a move that is dropped may hinder another one, so repeat."""
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
        """One move for each target that is free, if its directory is at one old path only."""
        found: list[Move] = []
        for target in dict.fromkeys(move.new for move in moves):
            sources = {move.old for move in moves if move.new == target}
            present = [path for path in sources if self._is_directory(path)]
            if len(present) == 1 and stat_entry(self._view, target) is None:
                found.append(Move(present[0], target))
        return found

    def _hindered(self, move: Move, possible: list[Move], touched: list[RelPath]) -> bool:
        """Whether the directory cannot be renamed as a whole: something else changes with it."""
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
        """Whether a file in it is a hardlink of a file outside of it."""
        inside = new + b"/"
        return any(
            isinstance(entry, File) and entry.link and not entry.link.startswith(inside)
            for entry in self._wanted.linked_below(new)
        )

    def _is_directory(self, path: RelPath) -> bool:
        found = stat_entry(self._view, path)
        return found is not None and isinstance(found.entry, Directory)

    def _expand(self, move: _PastMove) -> None:
        """Take a move apart: each path is removed at its old place and added at its new one."""
        for entry in move.past.entries_below(move.old):
            self._add(Change(entry.path, entry, None))
        for entry in self._wanted.entries_below(move.new):
            self._add(Change(entry.path, None, entry))


def gone(past: Iterable[Selection], wanted: Selection) -> set[RelPath]:
    """The paths in one of `past` that are not in `wanted`."""
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
