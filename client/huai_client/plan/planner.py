"""Turns the differences between a tree and a snapshot into an ordered list of operations.

Pure.  The input is one `Candidate` for each path that may differ.  `content_is_here` alone decides
whether a file needs a transfer.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from huai_client.diff.candidate import Candidate, Move, content_is_here
from huai_client.plan.operations import Plan, Remove, Stage
from huai_schema.codec.publish_rules import STAGES
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath, ancestors, parent, path_order


class StageOf(Protocol):
    """Says in which stage a file or symlink is published: an index into `STAGES`."""

    def __call__(self, path: RelPath, *, symlink: bool = False) -> int:
        """The stage of `path`, which is in the wanted snapshot or was deleted from it."""


def make_plan(
    candidates: Iterable[Candidate],
    moves: Iterable[Move],
    stage_of: StageOf,
) -> Plan:
    """The operations for `candidates`."""
    ordered = sorted(candidates, key=lambda candidate: path_order(candidate.path))
    planner = _Planner(ordered, stage_of)
    for candidate in ordered:
        planner.add(candidate)
    return planner.plan(sorted(moves, key=lambda move: path_order(move.new)))


def changed_directories(plan: Plan) -> set[RelPath]:
    """Directories in which the plan changes names, so that their times must be set at the end."""
    paths = {parent(item.path) for items in (plan.clear, plan.removals) for item in items}
    paths |= {parent(path) for path in plan.make if path}
    for move in plan.moves:
        paths |= {parent(move.old), parent(move.new), move.new}
    for stage in plan.stages:
        paths |= {parent(file.path) for file in (*stage.fetches, *stage.links)}
        paths |= {parent(symlink.path) for symlink in stage.symlinks}
    return paths


def with_directories(plan: Plan, directories: Iterable[Directory]) -> Plan:
    """The plan, which sets final attributes of `directories` too."""
    final = {directory.path: directory for directory in (*directories, *plan.directories)}
    ordered = sorted(final.values(), key=lambda entry: path_order(entry.path), reverse=True)
    return replace(plan, directories=ordered)


class _Planner:
    def __init__(self, candidates: list[Candidate], stage_of: StageOf) -> None:
        self._stage_of = stage_of
        self._present = {each.path for each in candidates if each.have is not None}
        self._stages = [Stage(name) for name in STAGES]
        self._clear: list[Remove] = []
        self._make: list[RelPath] = []
        self._removals: list[Remove] = []
        self._directories: list[Directory] = []
        self._cleared: set[RelPath] = set()
        self._groups = _Groups(candidates)

    def add(self, candidate: Candidate) -> None:
        wanted = candidate.wanted
        if wanted is None:
            self._remove(candidate)
        elif candidate.special or "type" in candidate.differing:
            self._clear_away(candidate)
            self._create(wanted)
        elif candidate.have is None:
            self._create(wanted)
        else:
            self._update(candidate, wanted)

    def plan(self, moves: list[Move]) -> Plan:
        return Plan(
            clear=self._clear[::-1],
            make=self._make,
            moves=moves,
            stages=[self._linked(stage) for stage in self._stages],
            removals=self._removals[::-1],
            directories=self._directories[::-1],
        )

    def _remove(self, candidate: Candidate) -> None:
        if candidate.have is None and not candidate.special:
            return
        removal = Remove(candidate.path, isinstance(candidate.have, Directory))
        below_cleared = not self._cleared.isdisjoint(ancestors(candidate.path))
        (self._clear if below_cleared else self._removals).append(removal)

    def _clear_away(self, candidate: Candidate) -> None:
        # Where no directory is involved, the rename that publishes the new entry replaces the old.
        if isinstance(candidate.have, Directory) or isinstance(candidate.wanted, Directory):
            self._cleared.add(candidate.path)
            self._clear.append(Remove(candidate.path, isinstance(candidate.have, Directory)))

    def _create(self, wanted: Entry) -> None:
        stage = self._stage(wanted)
        if isinstance(wanted, Directory):
            self._make.append(wanted.path)
            self._directories.append(wanted)
        elif isinstance(wanted, Symlink):
            stage.symlinks.append(wanted)
        elif wanted.link is not None:
            stage.links.append(wanted)
        else:
            stage.fetches.append(wanted)

    def _update(self, candidate: Candidate, wanted: Entry) -> None:
        if isinstance(wanted, Directory):
            if candidate.differing:
                self._directories.append(wanted)
        elif isinstance(wanted, Symlink):
            if "target" in candidate.differing:
                self._create(wanted)
            elif candidate.differing:
                self._stage(wanted).attributes.append(wanted)
        elif wanted.link is not None:
            self._groups.members.append((candidate, wanted))
        elif not content_is_here(candidate) or self._groups.must_part(candidate):
            self._create(wanted)
        elif candidate.differing:
            self._stage(wanted).attributes.append(wanted)

    def _linked(self, stage: Stage) -> Stage:
        """Add the hardlinks to make again: of a leader that is replaced, or of another inode.

        New files come before replaced ones: from the first replacement on the old indices are
        wrong, and until the last one the new indices are.
        """
        stage.fetches.sort(key=lambda file: file.path in self._present)
        replaced = {file.path for each in self._stages for file in each.fetches}
        for candidate, wanted in self._groups.members:
            mine = self._stage(wanted) is stage
            if mine and ("link" in candidate.differing or wanted.link in replaced):
                stage.links.append(wanted)
        return stage

    def _stage(self, wanted: Entry) -> Stage:
        return self._stages[self._number(wanted)]

    def _number(self, wanted: Entry) -> int:
        """The stage of `wanted`; a hardlink comes no earlier than its leader."""
        number = self._stage_of(wanted.path, symlink=isinstance(wanted, Symlink))
        if isinstance(wanted, File) and wanted.link is not None:
            return max(number, self._stage_of(wanted.link))
        return number


class _Groups:
    """Former hardlink groups: which file keeps the shared inode when a group is split."""

    def __init__(self, candidates: list[Candidate]) -> None:
        self._gone = {candidate.path for candidate in candidates if candidate.wanted is None}
        self._heirs: set[RelPath] = set()
        self.members: list[tuple[Candidate, File]] = []
        """Hardlinks of the wanted snapshot whose path exists."""

    def must_part(self, candidate: Candidate) -> bool:
        """Whether `candidate`, which is no hardlink now, has to leave an inode that it shares.

        If the former leader is deleted, the first file of its group that asks keeps the inode.
        """
        if "link" in candidate.differing:
            return True
        leaders = {entry.link for entry in candidate.past if isinstance(entry, File) and entry.link}
        if candidate.links < 2 or not leaders:
            return False
        if leaders <= self._gone and self._heirs.isdisjoint(leaders):
            self._heirs |= leaders
            return False
        return True
