"""Which paths may differ, and what stands there: the input of the planner.

Looks at the tree, and reads the content of a file only where nothing else can tell whether it
is the wanted one.  Costs what the snapshots differ by; only a tree that was never synced is
compared as a whole.
"""

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from huai_client.hashing import digest_of
from huai_client.merge import Match, Missing, Stranger, merge
from huai_client.observe import Observed, Unreadable, differences, observe
from huai_client.operations import Move
from huai_client.plan import Candidate, worth_hashing
from huai_client.tree import PathError, View
from huai_client.verify import Difference
from huai_schema.changes import Change
from huai_schema.diff import diff
from huai_schema.entries import Directory, Entry, File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import RelPath, show
from huai_schema.snapshot import Snapshot, decode_listing


class UnreadableTreeError(HuaiError):
    """Something in the destination cannot be looked at."""

    exit_code = ExitCode.DESTINATION


_DAMAGED = b"damaged"
"""Equal to no digest."""


class Survey(NamedTuple):
    """What the planner needs to know about the tree."""

    candidates: list[Candidate]
    moves: list[Move]
    strangers: list[RelPath]
    """Paths that no snapshot names; found only when the whole tree was compared."""


def survey_whole(view: View, wanted: Snapshot, *, delete_strangers: bool) -> Survey:
    """Compare everything; for a tree that some other tool made.

    What no snapshot names is a stranger: told, and deleted only if asked for.
    """
    candidates: list[Candidate] = []
    strangers: list[RelPath] = []
    for finding in merge(view, wanted.entries(), owners=view.owners):
        if isinstance(finding, Match):
            if finding.attributes:
                candidates.append(
                    _candidate(view, finding.wanted, finding.observed, (), finding.attributes)
                )
        elif isinstance(finding, Missing):
            candidates.append(Candidate(finding.wanted.path, None, finding.wanted))
        elif isinstance(finding, Stranger):
            strangers.append(finding.path)
            if delete_strangers:
                candidates.append(_observed(view, finding.path, None, ()))
        else:
            raise _unreadable(finding)
    return Survey(candidates, [], strangers)


def survey_changes(view: View, past: Iterable[Snapshot], wanted: Snapshot) -> Survey:
    """Look at the paths in which any snapshot of `past` differs from `wanted`.

    The first of `past` is the applied one; the others are those that cut runs were going for.
    """
    collected = _Collected(view, wanted)
    for number, snapshot in enumerate(past):
        collected.add(snapshot, movable=number == 0)
    return collected.survey()


def survey_damage(
    view: View, damage: Iterable[Difference], wanted: Snapshot, *, delete_strangers: bool
) -> Survey:
    """Look again at what `verify` found, to mend it."""
    candidates: list[Candidate] = []
    strangers: list[RelPath] = []
    for difference in damage:
        path = difference.path
        entry = wanted.entry(path)
        if entry is None:
            strangers.append(path)
            if delete_strangers:
                candidates.append(_observed(view, path, None, ()))
            continue
        candidate = _observed(view, path, entry, ())
        if "digest" in difference.attributes:
            # Size and time are right, so only this tells the planner that the content is not.
            candidate = candidate._replace(digest=_DAMAGED)
        candidates.append(candidate)
    return Survey(candidates, [], strangers)


class _Collected:
    """The union of several differences, by path."""

    def __init__(self, view: View, wanted: Snapshot) -> None:
        self._view = view
        self._wanted = wanted
        self._paths: dict[RelPath, Entry | None] = {}
        self._past: dict[RelPath, list[Entry]] = {}
        self._moves: list[Move] = []

    def add(self, past: Snapshot, *, movable: bool) -> None:
        for difference in diff(past, self._wanted):
            if isinstance(difference, Change):
                self._change(difference)
            elif movable and self._can_move(difference.old, difference.new):
                self._moves.append(Move(difference.old, difference.new))
            else:
                for change in _expanded(past, difference.old, self._wanted, difference.new):
                    self._change(change)

    def survey(self) -> Survey:
        candidates = [
            _observed(self._view, path, wanted, tuple(self._past.get(path, ())))
            for path, wanted in self._paths.items()
        ]
        return Survey(candidates, self._moves, [])

    def _change(self, change: Change) -> None:
        self._paths[change.path] = change.new or self._paths.get(change.path)
        if change.old is not None:
            self._past.setdefault(change.path, []).append(change.old)

    def _can_move(self, old: RelPath, new: RelPath) -> bool:
        here, there = observe(self._view, old), observe(self._view, new)
        return here is not None and isinstance(here.entry, Directory) and there is None


def _expanded(past: Snapshot, old: RelPath, wanted: Snapshot, new: RelPath) -> Iterator[Change]:
    """A move as what it is for each path: gone there, new here."""
    for listing in past.subtree(old):
        for entry in decode_listing(listing):
            yield Change(entry.path, entry, None)
    for listing in wanted.subtree(new):
        for entry in decode_listing(listing):
            yield Change(entry.path, None, entry)


def _observed(
    view: View, path: RelPath, wanted: Entry | None, past: tuple[Entry, ...]
) -> Candidate:
    try:
        found = observe(view, path)
        if found is None:
            return Candidate(path, None, wanted, past)
        if wanted is None:
            special = found.entry is None
            return Candidate(path, found.entry, None, past, special=special)
        leader = observe(view, wanted.link) if isinstance(wanted, File) and wanted.link else None
    except PathError as error:
        raise _unreadable(Unreadable(error.path, error.reason)) from error
    differing = differences(found, wanted, owners=view.owners, leader=leader)
    return _candidate(view, wanted, found, past, differing)


def _candidate(
    view: View,
    wanted: Entry,
    found: Observed,
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
    )
    if worth_hashing(candidate):
        return candidate._replace(digest=_digest(view, wanted.path))
    return candidate


def _digest(view: View, path: RelPath) -> bytes | None:
    """The digest of a local file; None, which leads to a transfer, if it cannot be read."""
    try:
        handle = view.open_file(path)
    except PathError:
        return None
    try:
        return digest_of(handle)
    except OSError:
        return None
    finally:
        os.close(handle)


def _unreadable(finding: Unreadable) -> UnreadableTreeError:
    return UnreadableTreeError(
        f"{show(finding.path)}: {finding.reason}", hint="mend that by hand, then run again"
    )
