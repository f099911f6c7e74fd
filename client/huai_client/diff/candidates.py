"""The paths that may differ, with their local entries: the input of the planner.

Reads the attributes of these paths, and the content of a file only if the attributes do not decide.
The cost grows with the difference between the snapshots; only a tree that was never synced is
compared as a whole.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from stat import S_ISREG

from huai_client.diff.candidate import Difference, DifferenceKind, TreeDiff
from huai_client.diff.compare import TreeComparison
from huai_client.diff.moves import ChangedPaths, anywhere, paths_removed, same_stat_changes
from huai_client.diff.renames import RenamedView
from huai_client.diff.selection import Selection
from huai_client.diff.symlinks import is_unsafe
from huai_client.diff.table import CandidateTable
from huai_client.tree import PathError, View
from huai_client.tree.hashing import digest_of
from huai_client.tree.view import Unreadable
from huai_schema.entries import Directory, Entry, File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import ROOT, RelPath, ancestors, path_order, show


class UnreadableTreeError(HuaiError):
    """A path in the destination cannot be read."""

    exit_code = ExitCode.DESTINATION


_DAMAGED = b"damaged"
"""A value that is not equal to any digest."""


def diff_whole(
    view: View,
    past: Sequence[Selection],
    target: Selection,
    *,
    delete_extraneous: bool,
    safe_links: bool = False,
    tick: Callable[[], None] = lambda: None,
) -> TreeDiff:
    """Compare the whole tree with `target`, for example one that another program made.

    `tick` is called now and then, and may raise to end the comparison.  With `safe_links` all
    unsafe symlinks of `target` are candidates, even those that exist.

    A path in neither `target` nor any of `past` is extraneous: it is reported, and deleted only
    with `delete_extraneous`.  Size and time decide, except where `target` and one of `past` have
    different content with the same size and time: those files are read.
    Raises `UnreadableTreeError`, and `FormatError` for a bad hardlink of `target`.
    """
    table = CandidateTable(view.names)
    extraneous: list[RelPath] = []
    going: dict[RelPath, Entry | None] = {}
    removed_paths = paths_removed(past, target)
    for finding in TreeComparison(view, target).put_into(table, tick):
        if isinstance(finding, Unreadable):
            raise _unreadable(finding)
        if not delete_extraneous and finding.path not in removed_paths:
            extraneous.append(finding.path)
        else:
            going[finding.path] = None
    _compare(view, table, going, tick=tick)
    _add_same_stat_changes(view, table, same_stat_changes(past, target), tick)
    _add_members(view, table, target)
    if safe_links:
        unsafe = {entry.path: entry for entry in target.symlinks() if is_unsafe(entry)}
        candidates = table.select_candidates({*unsafe})
        _compare(
            view, table, {path: entry for path, entry in unsafe.items() if path not in candidates}
        )
    target.snapshot.check_hardlinks(table.engine.linked())
    return TreeDiff(table, [], extraneous)


def split_from_own(
    view: View, diff: TreeDiff, target: Selection, own_paths: Iterable[RelPath]
) -> TreeDiff:
    """Return the comparison, with "link" among the differences of files linked to `own_paths`.

    The files at `own_paths` must not change.  If the candidates of `diff` are a table, that is
    changed as well.  Raises `UnreadableTreeError`.
    """
    files = [
        (path, status)
        for path in own_paths
        if (status := view.stat(path)) and S_ISREG(status.st_mode) and status.st_nlink > 1
    ]
    if not files:
        return diff
    table = CandidateTable.of(diff.candidates)
    stats = {(status.st_size, status.st_mtime_ns) for _, status in files}
    equal = (each for each in target.entries() if isinstance(each, File))
    equal_files = {each.path: each for each in equal if (each.size, each.mtime) in stats}
    candidates = table.select_candidates({*equal_files})
    other_table = CandidateTable(view.names)
    _compare(
        view, other_table, {path: equal_files[path] for path in equal_files.keys() - candidates}
    )
    inodes = {(status.st_dev, status.st_ino) for _, status in files}
    table.engine.extend([each for each in other_table.engine.shared() if each.inode in inodes])
    names = {each.path for each in table.engine.shared() if each.inode in inodes}
    table.engine.part(names - {path for path, _ in files})
    return diff._replace(candidates=table)


def diff_changes(
    view: View,
    past: Sequence[Selection],
    target: Selection,
    may_move: Callable[[RelPath, RelPath], bool] = anywhere,
) -> TreeDiff:
    """Compare the paths in which any selection of `past` differs from `target`.

    The first of `past` is the applied one; the others are those of interrupted runs.  `may_move`
    decides which directories may be renamed as a whole.  The candidates describe the tree after the
    moves.  Raises as `diff_whole` does.
    """
    try:
        collected = ChangedPaths(view, past, target, may_move)
    except PathError as error:
        raise _unreadable(Unreadable(error.path, error.reason)) from error
    view = RenamedView(view, collected.moves)
    table = collected.table
    _survey(view, table)
    # An interrupted run may have left other times and modes on these directories.
    disturbed = {ROOT, *collected.parents()} if len(past) > 1 else {ROOT}
    _add_directories(view, table, disturbed - table.select_candidates(disturbed), target)
    lost = {
        entry.path: entry
        for path in _lost_directories(view, table)
        for entry in target.entries_below(path)
    }
    candidates = table.select_candidates({*lost})
    _compare(view, table, {path: entry for path, entry in lost.items() if path not in candidates})
    _add_leaders(view, table, target)
    target.snapshot.check_hardlinks(table.engine.linked())
    return TreeDiff(table, collected.moves, [])


def diff_damage(
    view: View, damage: Iterable[Difference], target: Selection, *, delete_extraneous: bool
) -> TreeDiff:
    """Compare the paths that `verify` reported with `target`.

    Files with damaged content count as different.  A path that `target` does not have is only
    reported as extraneous, unless `delete_extraneous` is set.  Raises `UnreadableTreeError`.
    """
    differences = list(damage)
    paths = {difference.path for difference in differences}
    # Size and time are right; a different digest tells the planner that the content is wrong.
    damaged = {
        difference.path
        for difference in differences
        if "digest" in difference.attributes or difference.kind is DifferenceKind.UNREADABLE
    }
    entries = target.entries_at(paths)
    extraneous = [] if delete_extraneous else sorted(paths - entries.keys(), key=path_order)
    looked_at = paths if delete_extraneous else entries
    table = CandidateTable(view.names)
    _compare(view, table, {path: entries.get(path) for path in looked_at})
    for row, candidate in enumerate(table):
        if candidate.expected and candidate.path in damaged:
            table.engine.set_digest(row, _DAMAGED)
    _add_members(view, table, target)
    return TreeDiff(table, [], extraneous)


def _lost_directories(view: View, table: CandidateTable) -> set[RelPath]:
    """Return the uppermost directories that were applied and no longer exist."""
    lost: set[RelPath] = set()
    for path in map(RelPath, table.engine.expected_directories()):
        missing = [each for each in (path, *ancestors(path)) if not view.is_directory(each)]
        lost |= set(missing[-1:])
    return lost


def _add_directories(
    view: View, table: CandidateTable, paths: Iterable[RelPath], target: Selection
) -> None:
    """Add those of `paths` that are directories and should be."""
    compared = CandidateTable(view.names)
    _compare(view, compared, {path: target.directory(path) for path in paths})
    table.engine.extend(
        [
            each
            for each in compared
            if isinstance(each.have, Directory) and each.expected is not None
        ]
    )


def _add_same_stat_changes(
    view: View,
    table: CandidateTable,
    changes: Mapping[RelPath, tuple[File, list[Entry]]],
    tick: Callable[[], None],
) -> None:
    """Compare files by digest whose content changed without a change of size or time.

    `changes` is the result of `same_stat_changes`; `tick` as in `diff_whole`.
    """
    candidates = table.select_candidates({*changes})
    for row, candidate in enumerate(table if candidates else ()):
        if candidate.path in candidates and isinstance(candidate.have, File):
            table.engine.set_digest(row, digest_here(view, candidate.path))
    new = {path: change for path, change in changes.items() if path not in candidates}
    past = {path: entries for path, (_, entries) in new.items()}
    _compare(view, table, {path: file for path, (file, _) in new.items()}, past, tick)


def _add_members(view: View, table: CandidateTable, target: Selection) -> None:
    """Add all hardlinks of replaced files: they have to become links of the new file."""
    leaders = {RelPath(path) for path in table.engine.replaced()}
    _compare(view, table, _members(target, leaders, table))


def _add_leaders(view: View, table: CandidateTable, target: Selection) -> None:
    """Add the leaders of hardlinks to make, if they differ from their expected entries.

    A leader that did not change upstream is not a candidate otherwise, and a hardlink is made only
    to a file that is right.
    """
    leaders = {RelPath(path) for path in table.engine.leaders()}
    if not leaders:
        return
    expected = target.entries_at(leaders - table.select_candidates(leaders))
    files = {path: each for path, each in expected.items() if isinstance(each, File)}
    compared = CandidateTable(view.names)
    _compare(view, compared, files, _as_past(files))
    if not len(compared.engine.plan()):  # nothing to do, for any of them
        return
    broken = [each for each in compared if each.have is None or each.differing]
    members = _members(target, {each.path for each in broken}, table)
    table.engine.extend(broken)
    _compare(view, table, members, _as_past(members))


def _members(
    target: Selection, leaders: Collection[RelPath], table: CandidateTable
) -> dict[RelPath, File]:
    """Return the hardlinks of `leaders` that are not in `table`."""
    linked = {
        entry.path: entry
        for entry in (target.linked() if leaders else ())
        if isinstance(entry, File) and entry.link in leaders
    }
    candidates = table.select_candidates({*linked})
    return {path: file for path, file in linked.items() if path not in candidates}


def _as_past(entries: Mapping[RelPath, File]) -> dict[RelPath, list[Entry]]:
    return {path: [entry] for path, entry in entries.items()}


def _compare(
    view: View,
    table: CandidateTable,
    expected: Mapping[RelPath, Entry | None],
    past: Mapping[RelPath, Sequence[Entry]] | None = None,
    tick: Callable[[], None] = lambda: None,
) -> None:
    """Add a candidate, with its local entry, for each path of `expected` to `table`.

    `past` has entries of past snapshots.  `tick` is called now and then while files are read, and
    may raise to end the comparison.
    """
    before = past or {}
    table.add([(path, entry, before.get(path, ())) for path, entry in expected.items()])
    _survey(view, table, tick)


def _survey(view: View, table: CandidateTable, tick: Callable[[], None] = lambda: None) -> None:
    """Read the local entries of new candidates, and the digests that are needed.

    Raises `UnreadableTreeError` if a path cannot be read.
    """
    try:
        view.survey(table.engine)
    except PathError as error:
        raise _unreadable(Unreadable(error.path, error.reason)) from error
    view.hash_candidates(table.engine, _DAMAGED, tick)


def digest_here(view: View, path: RelPath) -> bytes:
    """Return the digest of a local file; if it cannot be read, a value that causes a transfer."""
    try:
        handle = view.open_file(path)
    except PathError:
        return _DAMAGED
    try:
        return digest_of(handle)
    except OSError:
        return _DAMAGED
    finally:
        os.close(handle)


def _unreadable(finding: Unreadable) -> UnreadableTreeError:
    return UnreadableTreeError(
        f"{show(finding.path)}: {finding.reason}",
        hint="repair the path or its permissions by hand, then run again",
    )
