"""Which paths may differ, and what is there: the input of the planner.

Reads the attributes of these paths, and the content of a file only if nothing else can tell whether
it is the wanted one.  Costs what the snapshots differ by; only a tree that was never synced is
compared as a whole.
"""

import os
from collections.abc import Callable, Iterable, Sequence

from huai_client.diff.candidate import Candidate, Move, TreeDiff, replaces, worth_hashing
from huai_client.diff.compare import Extraneous, Match, Missing, TreeComparison
from huai_client.diff.findings import Difference
from huai_client.diff.moves import ChangedPaths, anywhere, gone
from huai_client.diff.selection import Selection
from huai_client.tree import PathError, View
from huai_client.tree.hashing import digest_of
from huai_client.tree.local_entry import LocalEntry, Unreadable, differences_here, stat_entry
from huai_schema.entries import Directory, Entry, File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import ROOT, RelPath, ancestors, parent, show


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
    tick: Callable[[], None] = lambda: None,
) -> TreeDiff:
    """Compare the whole tree; for one that another program made.

    `tick` is called now and then, and may raise to end the comparison.

    A path that neither `wanted` nor one of `past` names is extraneous: it is reported, and deleted
    only with `delete_extraneous`.
    """
    candidates: list[Candidate] = []
    extraneous: list[RelPath] = []
    ours = gone(past, wanted)
    for finding in TreeComparison(view, wanted, owners=view.owners).findings(tick):
        if isinstance(finding, Match):
            candidates.append(
                _candidate(view, finding.wanted, finding.observed, (), finding.attributes)
            )
        elif isinstance(finding, Missing):
            candidates.append(Candidate(finding.wanted.path, None, finding.wanted))
        elif isinstance(finding, Extraneous):
            if not delete_extraneous and finding.path not in ours:
                extraneous.append(finding.path)
            else:
                candidates.append(_observed(view, finding.path, None, ()))
        else:
            raise _unreadable(finding)
    return TreeDiff(_with_members(view, candidates, wanted), [], extraneous)


def diff_changes(
    view: View,
    past: Sequence[Selection],
    wanted: Selection,
    may_move: Callable[[RelPath, RelPath], bool] = anywhere,
) -> TreeDiff:
    """Look at the paths in which any selection of `past` differs from `wanted`.

    The first of `past` is the applied one; the others are those of interrupted runs.  `may_move`
    says which directories may be renamed as a whole.
    """
    try:
        collected = ChangedPaths(view, past, wanted, may_move)
    except PathError as error:
        raise _unreadable(Unreadable(error.path, error.reason)) from error
    found: dict[RelPath, Candidate] = {}
    for path, entry in collected.paths.items():
        before = tuple(collected.past.get(path, ()))
        if path in collected.vacated:
            found[path] = Candidate(path, None, entry, before)
        else:
            found[path] = _observed(view, path, entry, before)
    # An interrupted run may have left other times and modes on these directories.
    disturbed = {ROOT, *collected.parents} if len(past) > 1 else {ROOT}
    for path in disturbed - found.keys():
        candidate = _observed(view, path, wanted.directory(path), ())
        if isinstance(candidate.have, Directory) and candidate.wanted is not None:
            found[path] = candidate
    for path in _lost_directories(view, found.values()):
        for entry in wanted.entries_below(path):
            if entry.path not in found:
                found[entry.path] = _observed(view, entry.path, entry, ())
    candidates = _with_leaders(view, list(found.values()), wanted, collected.moves)
    return TreeDiff(candidates, collected.moves, [])


def diff_damage(
    view: View, damage: Iterable[Difference], wanted: Selection, *, delete_extraneous: bool
) -> TreeDiff:
    """Look at the paths that `verify` found, to repair them."""
    candidates: list[Candidate] = []
    extraneous: list[RelPath] = []
    damage = list(damage)
    entries = wanted.entries_at(difference.path for difference in damage)
    for difference in damage:
        path = difference.path
        entry = entries.get(path)
        if entry is None:
            if not delete_extraneous:
                extraneous.append(path)
            else:
                candidates.append(_observed(view, path, None, ()))
            continue
        candidate = _observed(view, path, entry, ())
        if "digest" in difference.attributes:
            # Size and time are right; this digest tells the planner that the content is wrong.
            candidate = candidate._replace(digest=_DAMAGED)
        candidates.append(candidate)
    return TreeDiff(_with_members(view, candidates, wanted), [], extraneous)


def _lost_directories(view: View, candidates: Iterable[Candidate]) -> set[RelPath]:
    """The uppermost directories that were applied and that are gone."""
    lost: set[RelPath] = set()
    for path in {_expected_directory(candidate) for candidate in candidates}:
        missing = [each for each in (path, *ancestors(path)) if not _is_directory(view, each)]
        lost |= set(missing[-1:])
    return lost


def _expected_directory(candidate: Candidate) -> RelPath:
    """The directory that a candidate shows to be missing, or perhaps missing; ROOT: none."""
    if candidate.wanted is None or not candidate.past or isinstance(candidate.have, Directory):
        return ROOT
    was_directory = any(isinstance(entry, Directory) for entry in candidate.past)
    if was_directory and isinstance(candidate.wanted, Directory):
        return candidate.path
    return parent(candidate.path) if candidate.have is None else ROOT


def _is_directory(view: View, path: RelPath) -> bool:
    found = stat_entry(view, path)
    return found is not None and isinstance(found.entry, Directory)


def _with_members(view: View, candidates: list[Candidate], wanted: Selection) -> list[Candidate]:
    """Add all hardlinks of files that are replaced: they have to become links of the new file."""
    leaders = {each.path for each in candidates if each.links > 1 and replaces(each)}
    known = {candidate.path for candidate in candidates}
    members = [
        _observed(view, entry.path, entry, ())
        for entry in (wanted.entries() if leaders else ())
        if isinstance(entry, File) and entry.link in leaders and entry.path not in known
    ]
    return candidates + members


def _with_leaders(
    view: View, candidates: list[Candidate], wanted: Selection, moves: Sequence[Move]
) -> list[Candidate]:
    """Add the leaders of hardlinks that have to be made, if they are not as they should be.

    A leader that did not change upstream is no candidate otherwise; a hardlink is only made of a
    file that is right.  A leader that is going to be moved is looked at where it is now.
    """
    known = {candidate.path for candidate in candidates}
    named = {
        each.wanted.link
        for each in candidates
        if isinstance(each.wanted, File) and each.wanted.link is not None
    }
    moved = {move.new for move in moves}
    unseen = {path for path in named - known if moved.isdisjoint(ancestors(path))}
    found = [
        _observed(view, path, entry, (entry,))
        for path, entry in wanted.entries_at(unseen).items()
        if isinstance(entry, File)
    ]
    broken = [each for each in found if each.have is None or each.differing]
    leaders = {each.path for each in broken}
    members = [
        _observed(view, entry.path, entry, (entry,))
        for entry in (wanted.entries() if leaders else ())
        if isinstance(entry, File) and entry.link in leaders and entry.path not in known
    ]
    return candidates + broken + members


def _observed(
    view: View, path: RelPath, wanted: Entry | None, past: tuple[Entry, ...]
) -> Candidate:
    try:
        found = stat_entry(view, path)
        if found is None:
            return Candidate(path, None, wanted, past)
        if wanted is None:
            return Candidate(
                path,
                found.entry,
                None,
                past,
                special=found.entry is None,
                links=found.nlinks,
                inode=(found.device, found.inode),
            )
        differing = differences_here(view, found, wanted)
    except PathError as error:
        raise _unreadable(Unreadable(error.path, error.reason)) from error
    return _candidate(view, wanted, found, past, differing)


def _candidate(
    view: View,
    wanted: Entry,
    found: LocalEntry,
    past: tuple[Entry, ...],
    differing: frozenset[str],
) -> Candidate:
    candidate = Candidate(
        wanted.path,
        found.entry,
        wanted,
        past,
        special=found.entry is None,
        differing=differing,
        links=found.nlinks,
        inode=(found.device, found.inode),
    )
    if worth_hashing(candidate):
        return candidate._replace(digest=digest_here(view, wanted.path))
    return candidate


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
