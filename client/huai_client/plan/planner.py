"""Turns the differences between a tree and a snapshot into an ordered list of operations.

Pure.  The input is one `Candidate` for each path that may differ.  `content_is_here` alone decides
whether a file needs a transfer.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from huai_client.diff.candidate import Candidate, Move, content_is_here
from huai_client.plan.operations import Plan, Remove, Stage
from huai_schema.codec.publish_rules import STAGES
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath, ancestors, parent, path_order

StagesOf: TypeAlias = Callable[[Sequence[tuple[RelPath, bool]]], Sequence[int]]
"""Says in which stages files and symlinks are published: indices into `STAGES`.

Is asked with paths of the wanted snapshot, and whether they are symlinks."""


def make_plan(
    candidates: Iterable[Candidate],
    moves: Iterable[Move],
    stages_of: StagesOf,
) -> Plan:
    """The operations for `candidates`."""
    ordered = sorted(candidates, key=lambda candidate: path_order(candidate.path))
    planner = _Planner(ordered)
    for candidate in ordered:
        planner.add(candidate)
    return planner.plan(sorted(moves, key=lambda move: path_order(move.new)), stages_of)


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
    def __init__(self, candidates: list[Candidate]) -> None:
        self._present = {each.path for each in candidates if each.have is not None}
        self._leaves: list[tuple[File | Symlink, bool]] = []
        """Each that is to be published, and whether more than its attributes."""
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

    def plan(self, moves: list[Move], stages_of: StagesOf) -> Plan:
        return Plan(
            clear=self._clear[::-1],
            make=self._make,
            moves=moves,
            stages=self._stages(stages_of),
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
        if isinstance(wanted, Directory):
            self._make.append(wanted.path)
            self._directories.append(wanted)
        else:
            self._leaves.append((wanted, True))

    def _update(self, candidate: Candidate, wanted: Entry) -> None:
        if isinstance(wanted, Directory):
            if candidate.differing:
                self._directories.append(wanted)
        elif isinstance(wanted, Symlink):
            if "target" in candidate.differing:
                self._create(wanted)
            elif candidate.differing:
                self._leaves.append((wanted, False))
        elif wanted.link is not None:
            self._groups.members.append((candidate, wanted))
        elif not content_is_here(candidate) or self._groups.must_part(candidate):
            self._create(wanted)
        elif candidate.differing:
            self._leaves.append((wanted, False))

    def _stages(self, stages_of: StagesOf) -> list[Stage]:
        """All leaves in their stages.

        New files come before replaced ones: from the first replacement on the old indices are
        wrong, and until the last one the new indices are.
        """
        stages = [Stage(name) for name in STAGES]
        members = self._groups.members
        leaves = [*(leaf for leaf, _ in self._leaves), *(wanted for _, wanted in members)]
        numbers = iter(_numbers(leaves, stages_of))
        for (leaf, made), number in zip(self._leaves, numbers, strict=False):
            _add(stages[number], leaf, made=made)
        for stage in stages:
            stage.fetches.sort(key=lambda file: file.path in self._present)
        replaced = {file.path for stage in stages for file in stage.fetches}
        # The hardlinks to make again: of a leader that is replaced, or of another inode.
        for (candidate, wanted), number in zip(members, numbers, strict=True):
            if "link" in candidate.differing or wanted.link in replaced:
                stages[number].links.append(wanted)
        return stages


def _add(stage: Stage, leaf: File | Symlink, *, made: bool) -> None:
    if not made:
        stage.attributes.append(leaf)
    elif isinstance(leaf, Symlink):
        stage.symlinks.append(leaf)
    elif leaf.link is not None:
        stage.links.append(leaf)
    else:
        stage.fetches.append(leaf)


def _numbers(leaves: Sequence[File | Symlink], stages_of: StagesOf) -> Sequence[int]:
    """The stages of `leaves`; a hardlink comes no earlier than its leader."""
    own = stages_of([(leaf.path, isinstance(leaf, Symlink)) for leaf in leaves])
    leaders = [leaf.link if isinstance(leaf, File) else None for leaf in leaves]
    known = dict.fromkeys(leader for leader in leaders if leader is not None)
    if not known:
        return own
    stages = dict(zip(known, stages_of([(leader, False) for leader in known]), strict=True))
    return [
        number if leader is None else max(number, stages[leader])
        for number, leader in zip(own, leaders, strict=True)
    ]


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
        if candidate.links < 2:
            return False
        leaders = {entry.link for entry in candidate.past if isinstance(entry, File) and entry.link}
        if not leaders:
            return False
        if leaders <= self._gone and self._heirs.isdisjoint(leaders):
            self._heirs |= leaders
            return False
        return True
