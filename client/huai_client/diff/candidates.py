"""Which paths may differ, and what is there: the input of the planner.

Reads the attributes of these paths, and the content of a file only if nothing else can tell whether
it is the wanted one.  Costs what the snapshots differ by; only a tree that was never synced is
compared as a whole.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from huai_client.diff.candidate import TreeDiff
from huai_client.diff.compare import TreeComparison
from huai_client.diff.findings import Difference, Kind
from huai_client.diff.hardlinks import check_hardlinks
from huai_client.diff.moves import ChangedPaths, anywhere, gone, rewritten
from huai_client.diff.renames import RenamedView
from huai_client.diff.selection import Selection
from huai_client.diff.symlinks import is_unsafe
from huai_client.diff.table import CandidateTable
from huai_client.tree import PathError, View
from huai_client.tree.hashing import digest_of
from huai_client.tree.local_entry import Unreadable, stat_entry
from huai_schema.entries import Directory, Entry, File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import ROOT, RelPath, ancestors, path_order, show


class UnreadableTreeError(HuaiError):
    """Something in the destination cannot be looked at."""

    exit_code = ExitCode.DESTINATION


_DAMAGED = b"damaged"
"""Equal to no digest."""


def diff_whole(
    view: View,
    past: Sequence[Selection],
    wanted: Selection,
    *,
    delete_extraneous: bool,
    safe_links: bool = False,
    tick: Callable[[], None] = lambda: None,
) -> TreeDiff:
    """Compare the whole tree; for one that another program made.

    `tick` is called now and then, and may raise to end the comparison.  With `safe_links` all
    unsafe symlinks of `wanted` are candidates, even those that are there.

    A path that neither `wanted` nor one of `past` names is extraneous: it is reported, and deleted
    only with `delete_extraneous`.  Size and time decide, except where `wanted` has other content
    than one of `past` under the same size and time: those files are read.
    """
    table = CandidateTable(view.names)
    extraneous: list[RelPath] = []
    going: dict[RelPath, Entry | None] = {}
    ours = gone(past, wanted)
    for finding in TreeComparison(view, wanted).put_into(table, tick):
        if isinstance(finding, Unreadable):
            raise _unreadable(finding)
        if not delete_extraneous and finding.path not in ours:
            extraneous.append(finding.path)
        else:
            going[finding.path] = None
    _look(view, table, going, tick=tick)
    _add_rewritten(view, table, rewritten(past, wanted), tick)
    _add_members(view, table, wanted)
    if safe_links:
        unsafe = {entry.path: entry for entry in wanted.symlinks() if is_unsafe(entry)}
        known = table.having({*unsafe})
        _look(view, table, {path: each for path, each in unsafe.items() if path not in known})
    check_hardlinks(table, wanted)
    return TreeDiff(table, [], extraneous)


def diff_changes(
    view: View,
    past: Sequence[Selection],
    wanted: Selection,
    may_move: Callable[[RelPath, RelPath], bool] = anywhere,
) -> TreeDiff:
    """Look at the paths in which any selection of `past` differs from `wanted`.

    The first of `past` is the applied one; the others are those of interrupted runs.  `may_move`
    says which directories may be renamed as a whole.  The candidates are the tree as it is after
    the moves.
    """
    try:
        collected = ChangedPaths(view, past, wanted, may_move)
    except PathError as error:
        raise _unreadable(Unreadable(error.path, error.reason)) from error
    view = RenamedView(view, collected.moves)
    table = collected.table
    _survey(view, table)
    # An interrupted run may have left other times and modes on these directories.
    disturbed = {ROOT, *collected.parents()} if len(past) > 1 else {ROOT}
    _add_directories(view, table, disturbed - table.having(disturbed), wanted)
    lost = {
        entry.path: entry
        for path in _lost_directories(view, table)
        for entry in wanted.entries_below(path)
    }
    known = table.having({*lost})
    _look(view, table, {path: entry for path, entry in lost.items() if path not in known})
    _add_leaders(view, table, wanted)
    check_hardlinks(table, wanted)
    return TreeDiff(table, collected.moves, [])


def diff_damage(
    view: View, damage: Iterable[Difference], wanted: Selection, *, delete_extraneous: bool
) -> TreeDiff:
    """Look at the paths that `verify` found, to repair them."""
    found = list(damage)
    paths = {difference.path for difference in found}
    # Size and time are right; another digest tells the planner that the content is wrong.
    damaged = {
        difference.path
        for difference in found
        if "digest" in difference.attributes or difference.kind is Kind.UNREADABLE
    }
    entries = wanted.entries_at(paths)
    extraneous = [] if delete_extraneous else sorted(paths - entries.keys(), key=path_order)
    looked_at = paths if delete_extraneous else entries
    table = CandidateTable(view.names)
    _look(view, table, {path: entries.get(path) for path in looked_at})
    for place, each in enumerate(table):
        if each.wanted and each.path in damaged:
            table.engine.set_digest(place, _DAMAGED)
    _add_members(view, table, wanted)
    return TreeDiff(table, [], extraneous)


def _lost_directories(view: View, table: CandidateTable) -> set[RelPath]:
    """The uppermost directories that were applied and that are gone."""
    lost: set[RelPath] = set()
    for path in map(RelPath, table.engine.expected_directories()):
        missing = [each for each in (path, *ancestors(path)) if not _is_directory(view, each)]
        lost |= set(missing[-1:])
    return lost


def _is_directory(view: View, path: RelPath) -> bool:
    found = stat_entry(view, path)
    return found is not None and isinstance(found.entry, Directory)


def _add_directories(
    view: View, table: CandidateTable, paths: Iterable[RelPath], wanted: Selection
) -> None:
    """Add those of `paths` at which a directory stands and is wanted."""
    found = CandidateTable(view.names)
    _look(view, found, {path: wanted.directory(path) for path in paths})
    table.engine.extend(
        [each for each in found if isinstance(each.have, Directory) and each.wanted is not None]
    )


def _add_rewritten(
    view: View,
    table: CandidateTable,
    changes: Mapping[RelPath, tuple[File, list[Entry]]],
    tick: Callable[[], None],
) -> None:
    """Compare files by digest whose size and time are the same before and after a change."""
    known = table.having({*changes})
    for place, each in enumerate(table if known else ()):
        if each.path in known and isinstance(each.have, File):
            table.engine.set_digest(place, digest_here(view, each.path))
    new = {path: change for path, change in changes.items() if path not in known}
    past = {path: entries for path, (_, entries) in new.items()}
    _look(view, table, {path: file for path, (file, _) in new.items()}, past, tick)


def _add_members(view: View, table: CandidateTable, wanted: Selection) -> None:
    """Add all hardlinks of files that are replaced: they have to become links of the new file."""
    leaders = {RelPath(path) for path in table.engine.replaced()}
    _look(view, table, _members(wanted, leaders, table))


def _add_leaders(view: View, table: CandidateTable, wanted: Selection) -> None:
    """Add the leaders of hardlinks that have to be made, if they are not as they should be.

    A leader that did not change upstream is no candidate otherwise; a hardlink is only made of a
    file that is right.
    """
    named = {RelPath(path) for path in table.engine.leaders()}
    if not named:
        return
    named_here = wanted.entries_at(named - table.having(named))
    files = {path: each for path, each in named_here.items() if isinstance(each, File)}
    found = CandidateTable(view.names)
    _look(view, found, files, _as_past(files))
    broken = [each for each in found if each.have is None or each.differing]
    members = _members(wanted, {each.path for each in broken}, table)
    table.engine.extend(broken)
    _look(view, table, members, _as_past(members))


def _members(
    wanted: Selection, leaders: Collection[RelPath], table: CandidateTable
) -> dict[RelPath, File]:
    """The hardlinks of `leaders`, without those that are in `table`."""
    found = {
        entry.path: entry
        for entry in (wanted.linked() if leaders else ())
        if isinstance(entry, File) and entry.link in leaders
    }
    known = table.having({*found})
    return {path: file for path, file in found.items() if path not in known}


def _as_past(entries: Mapping[RelPath, File]) -> dict[RelPath, list[Entry]]:
    """`entries` as those of the only past snapshot."""
    return {path: [entry] for path, entry in entries.items()}


def _look(
    view: View,
    table: CandidateTable,
    wanted: Mapping[RelPath, Entry | None],
    past: Mapping[RelPath, Sequence[Entry]] | None = None,
    tick: Callable[[], None] = lambda: None,
) -> None:
    """Add what is at each path of `wanted`; `past`: the entries of past snapshots.

    `tick` is called now and then while files are read, and may raise.
    """
    before = past or {}
    table.add([(path, entry, before.get(path, ())) for path, entry in wanted.items()])
    _survey(view, table, tick)


def _survey(view: View, table: CandidateTable, tick: Callable[[], None] = lambda: None) -> None:
    try:
        view.survey(table.engine)
    except PathError as error:
        raise _unreadable(Unreadable(error.path, error.reason)) from error
    view.hash_candidates(table.engine, _DAMAGED, tick)


def digest_here(view: View, path: RelPath) -> bytes:
    """The digest of a local file; if it cannot be read, a value that causes a transfer."""
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
