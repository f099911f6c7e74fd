"""Which paths may differ, and what is there: the input of the planner.

Reads the attributes of these paths, and the content of a file only if nothing else can tell whether
it is the wanted one.  Costs what the snapshots differ by; only a tree that was never synced is
compared as a whole.
"""

import os
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence

from huai_client.diff.candidate import Candidate, TreeDiff, replaces, worth_hashing
from huai_client.diff.compare import Extraneous, Match, Missing, TreeComparison
from huai_client.diff.findings import Difference
from huai_client.diff.moves import ChangedPaths, anywhere, gone
from huai_client.diff.renames import RenamedView
from huai_client.diff.selection import Selection
from huai_client.tree import PathError, View
from huai_client.tree.hashing import digest_of
from huai_client.tree.local_entry import Unreadable, stat_entry
from huai_client.tree.survey import Observed, survey
from huai_schema.entries import Directory, Entry, File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import ROOT, RelPath, ancestors, parent, path_order, show


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
    going: dict[RelPath, Entry | None] = {}
    ours = gone(past, wanted)
    for finding in TreeComparison(view, wanted, owners=view.owners).findings(tick):
        if isinstance(finding, Match):
            here = Observed(finding.observed, finding.attributes)
            candidates.append(_candidate(view, finding.wanted.path, finding.wanted, here))
        elif isinstance(finding, Missing):
            candidates.append(Candidate(finding.wanted.path, None, finding.wanted))
        elif isinstance(finding, Extraneous):
            if not delete_extraneous and finding.path not in ours:
                extraneous.append(finding.path)
            else:
                going[finding.path] = None
        else:
            raise _unreadable(finding)
    candidates += _observed(view, going)
    return TreeDiff(_with_members(view, candidates, wanted), [], extraneous)


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
    vacated, before = collected.vacated, collected.past
    there = {path: each for path, each in collected.paths.items() if path not in vacated}
    found = {candidate.path: candidate for candidate in _observed(view, there, before)}
    for path in collected.paths.keys() & vacated:
        found[path] = Candidate(path, None, collected.paths[path], tuple(before.get(path, ())))
    # An interrupted run may have left other times and modes on these directories.
    disturbed = {ROOT, *collected.parents} if len(past) > 1 else {ROOT}
    directories = {path: wanted.directory(path) for path in disturbed - found.keys()}
    for candidate in _observed(view, directories):
        if isinstance(candidate.have, Directory) and candidate.wanted is not None:
            found[candidate.path] = candidate
    lost = {
        entry.path: entry
        for path in _lost_directories(view, found.values())
        for entry in wanted.entries_below(path)
        if entry.path not in found
    }
    found.update((candidate.path, candidate) for candidate in _observed(view, lost))
    candidates = _with_leaders(view, list(found.values()), wanted)
    return TreeDiff(candidates, collected.moves, [])


def diff_damage(
    view: View, damage: Iterable[Difference], wanted: Selection, *, delete_extraneous: bool
) -> TreeDiff:
    """Look at the paths that `verify` found, to repair them."""
    found = list(damage)
    paths = {difference.path for difference in found}
    # Size and time are right; another digest tells the planner that the content is wrong.
    damaged = {difference.path for difference in found if "digest" in difference.attributes}
    entries = wanted.entries_at(paths)
    extraneous = [] if delete_extraneous else sorted(paths - entries.keys(), key=path_order)
    looked_at = paths if delete_extraneous else entries
    candidates = [
        each._replace(digest=_DAMAGED) if each.wanted and each.path in damaged else each
        for each in _observed(view, {path: entries.get(path) for path in looked_at})
    ]
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
    if isinstance(candidate.wanted, Directory) and any(
        isinstance(entry, Directory) for entry in candidate.past
    ):
        return candidate.path
    return parent(candidate.path) if candidate.have is None else ROOT


def _is_directory(view: View, path: RelPath) -> bool:
    found = stat_entry(view, path)
    return found is not None and isinstance(found.entry, Directory)


def _with_members(view: View, candidates: list[Candidate], wanted: Selection) -> list[Candidate]:
    """Add all hardlinks of files that are replaced: they have to become links of the new file."""
    leaders = {each.path for each in candidates if each.links > 1 and replaces(each)}
    known = {candidate.path for candidate in candidates}
    members = _members(wanted, leaders, known)
    return [*candidates, *_observed(view, members)]


def _with_leaders(view: View, candidates: list[Candidate], wanted: Selection) -> list[Candidate]:
    """Add the leaders of hardlinks that have to be made, if they are not as they should be.

    A leader that did not change upstream is no candidate otherwise; a hardlink is only made of a
    file that is right.
    """
    named = {
        each.wanted.link
        for each in candidates
        if isinstance(each.wanted, File) and each.wanted.link is not None
    }
    if not named:
        return candidates
    known = {candidate.path for candidate in candidates}
    named_here = wanted.entries_at(named - known)
    files = {path: each for path, each in named_here.items() if isinstance(each, File)}
    found = _observed(view, files, _as_past(files))
    broken = [each for each in found if each.have is None or each.differing]
    members = _members(wanted, {each.path for each in broken}, known)
    return [*candidates, *broken, *_observed(view, members, _as_past(members))]


def _members(
    wanted: Selection, leaders: Collection[RelPath], known: Container[RelPath]
) -> dict[RelPath, File]:
    """The hardlinks of `leaders`, without those that are `known`."""
    return {
        entry.path: entry
        for entry in (wanted.entries() if leaders else ())
        if isinstance(entry, File) and entry.link in leaders and entry.path not in known
    }


def _as_past(entries: Mapping[RelPath, File]) -> dict[RelPath, list[Entry]]:
    """`entries` as those of the only past snapshot."""
    return {path: [entry] for path, entry in entries.items()}


def _observed(
    view: View,
    wanted: Mapping[RelPath, Entry | None],
    past: Mapping[RelPath, Sequence[Entry]] | None = None,
) -> Iterator[Candidate]:
    """What is at each path of `wanted`, in tree order; `past`: the entries of past snapshots."""
    before = past or {}
    places = sorted(wanted.items(), key=lambda place: path_order(place[0]))
    try:
        for (path, entry), here in zip(places, survey(view, places), strict=True):
            yield _candidate(view, path, entry, here, tuple(before.get(path, ())))
    except PathError as error:
        raise _unreadable(Unreadable(error.path, error.reason)) from error


def _candidate(
    view: View,
    path: RelPath,
    wanted: Entry | None,
    here: Observed,
    past: tuple[Entry, ...] = (),
) -> Candidate:
    found = here.found
    if found is None:
        return Candidate(path, None, wanted, past)
    entry, inode = found.entry, (found.device, found.inode)
    candidate = Candidate(
        path, entry, wanted, past, entry is None, here.differing, found.nlinks, None, inode
    )
    if worth_hashing(candidate):
        return candidate._replace(digest=digest_here(view, path))
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
