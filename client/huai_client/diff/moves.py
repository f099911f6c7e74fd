"""The paths in which past snapshots differ from the target, and directories to rename.

Reads metadata, and the tree only to check that a directory is where a snapshot has it.
Differences in a renamed directory are paths below its new path.  Rule: a directory is renamed as a
whole only if nothing else happens below its old path, and no other one is renamed into it or out
of it; otherwise its entries are candidates one by one, and existing files are kept.

A run that is cut after a rename leaves entries at the new path that it would have changed there,
and no snapshot has them.  After a power cut, changes made there may be at the old path.  So the
snapshots of runs that were cut are compared with each other as well.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, permutations
from typing import TYPE_CHECKING, NamedTuple

from huai_client.diff.candidate import Move
from huai_client.diff.selection import Selection, diff_selections
from huai_client.diff.table import CandidateTable
from huai_client.tree import View
from huai_schema.diff.changes import Change
from huai_schema.diff.diff import Difference
from huai_schema.entries import Directory, Entry, File
from huai_schema.paths import RelPath, after_moves, ancestors, parent

if TYPE_CHECKING:
    from huai_client.diff.table import SurveyedPath


def anywhere(_old: RelPath, _new: RelPath) -> bool:
    """Return True: every move is allowed."""
    return True


def nowhere(_old: RelPath, _new: RelPath) -> bool:
    """Return False: no move is allowed."""
    return False


class _PastMove(NamedTuple):
    past: Selection
    old: RelPath
    new: RelPath


class ChangedPaths:
    """The union of several differences, as candidates that are not surveyed yet."""

    def __init__(
        self,
        view: View,
        past: Iterable[Selection],
        target: Selection,
        may_move: Callable[[RelPath, RelPath], bool] = anywhere,
    ) -> None:
        """Compare each of `past` with `target`; `may_move` decides about whole renames."""
        self._view = view
        self._may_move = may_move
        self._target = target
        past = list(past)
        self.table = CandidateTable(view.names)
        moves: list[_PastMove] = []
        for selection in past:
            changes = self.table.compare(selection, target)
            if changes is None:
                changes = self._add(diff_selections(selection, target))
            moves += [_PastMove(selection, *move) for move in changes]
        self.table.engine.merge()
        self.moves = self._settle(moves)
        """The directories to rename."""
        self._add_left_behind(past)
        # The old paths of moved directories are free before files are published.
        self.table.engine.vacate([move.old for move in self.moves])
        self._parents = {parent(path) for move in moves for path in (move.old, move.new)}

    def parents(self) -> set[RelPath]:
        """Return the directories in which a name changes."""
        return self._parents | {RelPath(path) for path in self.table.engine.parents()}

    def _add(self, differences: Iterable[Difference]) -> list[Move]:
        """Add the paths that change as candidates, and return the moves."""
        moves: list[Move] = []
        paths: list[SurveyedPath] = []
        for difference in differences:
            if isinstance(difference, Change):
                past = () if difference.old is None else (difference.old,)
                paths.append((difference.path, difference.new, past))
            else:
                moves.append(Move(difference.old, difference.new))
        self.table.add(paths)
        return moves

    def _add_left_behind(self, past: list[Selection]) -> None:
        """Add the entries that runs may have left in directories, and that move with them."""
        targets = {move.old: move.new for move in self.moves}
        left: dict[RelPath, list[Entry]] = {}
        for path, before in left_behind(past).items():
            left.setdefault(after_moves(path, targets), []).extend(before)
        entries = self._target.entries_at(left)
        self.table.add([(path, entries.get(path), before) for path, before in left.items()])
        self.table.engine.merge()

    def _settle(self, moves: list[_PastMove]) -> list[Move]:
        """Return the moves to make; the entries of dropped ones become candidates.

        A dropped move may hinder another one, so this is repeated.
        """
        possible, target = self._possible(moves), self._target
        given_up = {move.new for move in moves} - {move.new for move in possible}
        for _ in range(len(possible) + 1):
            for move in moves:
                if move.new in given_up:  # each path is removed, and added at its new place
                    old, new = move.past.entries_below(move.old), target.entries_below(move.new)
                    removals = (Change(entry.path, entry, None) for entry in old)
                    additions = (Change(entry.path, None, entry) for entry in new)
                    self._add(chain(removals, additions))
            self.table.engine.merge()
            touched = _Touched(possible)
            given_up = {move.new for move in possible if self._hindered(move, moves, touched)}
            possible = [move for move in possible if move.new not in given_up]
        return possible

    def _possible(self, moves: list[_PastMove]) -> list[Move]:
        """Return one move for each free target whose directory exists at one old path only."""
        free_moves: list[Move] = []
        for target in dict.fromkeys(move.new for move in moves):
            sources = {move.old for move in moves if move.new == target}
            present = [path for path in sources if self._view.is_directory(path)]
            if len(present) == 1 and self._view.stat(target) is None:
                free_moves.append(Move(present[0], target))
        return free_moves

    def _hindered(self, move: Move, moves: list[_PastMove], touched: "_Touched") -> bool:
        """Return True if it cannot be renamed: something else happens there, or links lead out."""
        table = self.table

        def changes_below(path: RelPath) -> bool:
            return _any_below(path, touched.paths) or table.engine.has_below(path)

        changes, arrives = table.expected_at(move.new)
        return (
            changes_below(move.old)
            or _any_below(move.new, touched.paths)
            or (changes and not isinstance(arrives, Directory))
            or isinstance(table.expected_at(move.old)[1], Directory)
            or touched.sources[move.old] > 1
            or any(_is_leaf(table.expected_at(above)[1]) for above in ancestors(move.old))
            or not self._may_move(move.old, move.new)
            or _links_out(self._target, move.new)
            # Without changes inside, it holds the same links as before.
            or (changes_below(move.new) and self._linked_out(move, moves))
        )

    def _linked_out(self, move: Move, moves: list[_PastMove]) -> bool:
        """Return True if a file in the directory was a hardlink of a file outside of it."""
        selections = (each.past for each in moves if (each.old, each.new) == move)
        return any(_links_out(past, move.old) for past in selections)


class _Touched:
    """The paths of moves, sorted, and the number of moves from each source."""

    def __init__(self, possible: list[Move]) -> None:
        self.paths = sorted({path for move in possible for path in move})
        self.sources = Counter(move.old for move in possible)


def left_behind(past: Sequence[Selection]) -> dict[RelPath, list[Entry]]:
    """Return the entries that runs may have left in directories that they renamed, by path.

    None of `past` need have an entry at this path: a run moved it there from another one.
    """
    remains: dict[RelPath, list[Entry]] = {}
    onward: dict[RelPath, set[RelPath]] = defaultdict(set)
    for former, later in permutations(past, 2):
        arrived: set[RelPath] = set()
        for difference in diff_selections(former, later):
            if not isinstance(difference, Change):
                arrived.add(difference.new)
                onward[difference.old].add(difference.new)
            elif difference.old is not None and not arrived.isdisjoint(ancestors(difference.path)):
                remains.setdefault(difference.path, []).append(difference.old)
    fresh = dict(remains)
    for _ in past:  # each run may have moved it further
        fresh = {
            RelPath(new + path[len(above) :]): entries
            for path, entries in fresh.items()
            for above in ancestors(path)
            for new in onward.get(above, ())
        }
        fresh = {path: entries for path, entries in fresh.items() if path not in remains}
        remains |= fresh
    return remains


def find_moves(past: Selection, target: Selection) -> list[Move]:
    """Return the directories that have other paths in `target`."""
    differences = diff_selections(past, target)
    moves = (each for each in differences if not isinstance(each, Change))
    return [Move(each.old, each.new) for each in moves]


def paths_removed(past: Iterable[Selection], target: Selection) -> set[RelPath]:
    """Return the paths of `past`, and those left behind there, that are not in `target`."""
    past = list(past)
    paths: set[RelPath] = {*left_behind(past)}
    present: set[RelPath] = set()
    for selection in past:
        for difference in diff_selections(selection, target):
            if not isinstance(difference, Change):
                paths |= {entry.path for entry in selection.entries_below(difference.old)}
            elif difference.new is None:
                paths.add(difference.path)
            else:
                present.add(difference.path)
    return paths - present


def same_stat_changes(
    past: Iterable[Selection], target: Selection
) -> dict[RelPath, tuple[File, list[Entry]]]:
    """Return the files of `target` whose content differs from `past`, but not size and time.

    By path: the file of `target`, and the entries of `past` with another digest.
    """
    changed: dict[RelPath, tuple[File, list[Entry]]] = {}
    for selection in past:
        for old, new in _file_pairs(selection, target):
            same = (old.size, old.mtime) == (new.size, new.mtime)
            if same and old.digest and new.digest and old.digest != new.digest:
                changed.setdefault(new.path, (new, []))[1].append(old)
    return changed


def _file_pairs(past: Selection, target: Selection) -> Iterator[tuple[File, File]]:
    """Yield pairs of files that exist in both and may differ."""
    for difference in diff_selections(past, target):
        if isinstance(difference, Change):
            pairs = [(difference.old, difference.new)]
        else:
            entries = [*target.entries_below(difference.new)]
            before = past.entries_at(entry.path for entry in entries)
            pairs = [(before.get(entry.path), entry) for entry in entries]
        for old, new in pairs:
            if isinstance(old, File) and isinstance(new, File):
                yield old, new


def _links_out(selection: Selection, path: RelPath) -> bool:
    """Return True if a file in the directory `path` is a hardlink of a file outside of it."""
    inside = path + b"/"
    return any(
        isinstance(entry, File) and entry.link and not entry.link.startswith(inside)
        for entry in selection.linked(path)
    )


def _any_below(path: RelPath, among: list[RelPath]) -> bool:
    """Return True if a sorted list holds any path in the directory `path`."""
    index = bisect_right(among, path + b"/")
    return index < len(among) and among[index].startswith(path + b"/")


def _is_leaf(entry: Entry | None) -> bool:
    return entry is not None and not isinstance(entry, Directory)
