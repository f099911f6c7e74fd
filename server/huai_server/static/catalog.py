"""Which packs lead from commit to commit, and which file says so.

Pure.  To each commit leads a step from the one before.  To the first commit of each eight leads one
from the first of the eight before, and so on with 64 and 512.  So whoever is N commits behind needs
about as many steps as N has digits, times a few, and each change is written a few times.

A commit is counted by its serial.  The catalog names the steps of the newest 64 commits, and those
that lead from 64 to 64; what is older stands in lists, one for each 64 commits.

Nearly everybody missed a commit or two, so the head names the newest steps alone, and a list that
has the rest, as it was at the first commit of the newest eight.  `unite` makes one of both.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from huai_schema.codec.static_files import NOTHING, ListOf, Static, StaticFile, Step

BLOCK = 64
"""Serials of which the steps stand in one list."""
LEVELS = (8, BLOCK, 512)
_GROUP = 8
_RECENT = 4
"""Commits before the newest from which steps stand in the head, whatever the list has."""
_SMALL = 16
"""Commits of which a head says all."""
COMMITS = 4096
"""The newest, from which steps lead."""


class Advanced(NamedTuple):
    """A head to which a commit was added."""

    head: Static
    closed: Static | None
    """What has to become a list: the steps of a block that is over."""


def sources(commits: Iterable[int], new: int) -> list[int]:
    """The serials from which steps lead to the commit `new`, the one before it first."""
    before = sorted(serial for serial in commits if serial < new)
    if not before:
        return []
    found = [before[-1]]
    for level in LEVELS:
        group = before[-1] // level
        if group != new // level:
            found.append(next(serial for serial in before if serial // level == group))
    return list(dict.fromkeys(found))


def begin(serial: int, commit: str) -> Static:
    """A head of one commit, and no file yet."""
    return Static({serial: commit}, ())


def advance(head: Static, serial: int, commit: str, made: Iterable[Step]) -> Advanced:
    """Add a commit, and the steps that were made to it."""
    commits = {serial: commit, **head.commits}
    steps = (*head.steps, *made)
    over = head.newest // BLOCK
    if over == serial // BLOCK:
        return Advanced(Static(commits, steps, head.lists), None)
    firsts = _firsts(commits)
    between = [step for step in steps if step.old == NOTHING or {step.old, step.new} <= firsts]
    moved = [step for step in steps if step.old // BLOCK == over and step not in between]
    closed = Static(_named(commits, moved), tuple(moved)) if moved else None
    stay = [step for step in steps if step in between or step.new == serial]
    wanted = {*firsts, serial, *_named(commits, stay)}
    commits = {each: commits[each] for each in commits if each in wanted}
    return Advanced(Static(commits, tuple(stay), head.lists), closed)


def add_list(head: Static, closed: Static, file: StaticFile) -> Static:
    """Name the list that `closed` became."""
    olds = [step.old for step in closed.steps]
    return head._replace(lists=(*head.lists, ListOf(min(olds), max(olds), file)))


def set_whole(head: Static, file: StaticFile) -> Static:
    """Name the pack that has all of the newest commit; there is one of the kind."""
    others = tuple(step for step in head.steps if step.old != NOTHING)
    return head._replace(steps=(*others, Step(NOTHING, head.newest, file)))


def cut(head: Static, floor: int) -> Static:
    """Leave out what leads from commits before the serial `floor`."""
    steps = tuple(step for step in head.steps if (step.old or step.new) >= floor)
    lists = tuple(each for each in head.lists if each.last >= floor)
    commits = {
        serial: commit
        for serial, commit in head.commits.items()
        if serial >= floor or serial == head.newest
    }
    return Static(commits, steps, lists)


def whole(head: Static) -> Step | None:
    """The pack that has all of a commit."""
    return next((step for step in head.steps if step.old == NOTHING), None)


def unite(front: Static, rest: Static) -> Static:
    """All that a head says together with the list of the rest that it names."""
    commits = {**front.commits, **rest.commits}
    old = [step for step in rest.steps if step.old != NOTHING or whole(front) is None]
    steps = dict.fromkeys((*front.steps, *old))
    lists = [each for each in front.lists if each.first != NOTHING]
    return Static(
        {serial: commits[serial] for serial in sorted(commits, reverse=True)},
        tuple(steps),
        (*rest.lists, *lists),
    )


def is_small(head: Static) -> bool:
    """Whether a head may say all that there is."""
    return len(head.commits) <= _SMALL


def is_outdated(rest: Static, head: Static) -> bool:
    """Whether a list of the rest is so old that it has to be written anew."""
    return rest.newest // _GROUP != head.newest // _GROUP


def front(head: Static, rest: Static, file: StaticFile) -> Static:
    """What stands in the head itself, if `file` has the rest."""
    floor = sorted(head.commits)[-_RECENT - 1 :][0]
    steps = tuple(step for step in head.steps if step not in rest.steps or step.old >= floor)
    lists = tuple(each for each in head.lists if each not in rest.lists)
    commits = {head.newest: head.commits[head.newest], **_named(head.commits, steps)}
    return Static(commits, steps, (ListOf(NOTHING, rest.newest, file), *lists))


def list_of_rest(front: Static) -> ListOf | None:
    """The list of what a head does not say itself."""
    return next((each for each in front.lists if each.first == NOTHING), None)


def _firsts(commits: Iterable[int]) -> set[int]:
    """The first of each block."""
    found: dict[int, int] = {}
    for serial in sorted(commits):
        found.setdefault(serial // BLOCK, serial)
    return set(found.values())


def _named(commits: Mapping[int, str], steps: Iterable[Step]) -> dict[int, str]:
    wanted = {serial for step in steps for serial in (step.old, step.new)}
    return {serial: commit for serial, commit in commits.items() if serial in wanted}
