"""The packs that lead from commit to commit, and the files that list them.

Pure.  A step leads to each commit from the one before.  To the first commit of each eight another
one leads from the first of the eight before, and so on with 64 and 512.  So a client N commits
behind needs a few steps for each digit of N, and each change is written a few times.

A commit is counted by its serial.  The catalog names the steps of the newest 64 commits, and those
from 64 to 64; older ones are in lists, one for each 64 commits.

Most clients missed only a commit or two, so the head names only the newest steps, and a list with
the rest as of the first commit of the newest eight.  `unite` joins both.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from huai_schema.codec.static_files import NOTHING, ListOf, Static, StaticFile, Step

BLOCK = 64
"""The serials whose steps are in one list."""
LEVELS = (8, BLOCK, 512)
_GROUP = 8
_RECENT = 4
"""Commits before the newest whose steps are always in the head."""
_SMALL = 16
"""A head of at most so many commits has no list."""
COMMITS = 4096
"""The newest commits, from which steps lead."""


class Advanced(NamedTuple):
    """A head with an added commit."""

    head: Static
    closed: Static | None
    """The steps of a finished block, which must become a list."""


def sources(commits: Iterable[int], new: int) -> list[int]:
    """Return the older serials of `commits` from which packs to `new` are made, newest first.

    They are the previous commit and, for each of `LEVELS` whose block `new` begins, the first
    commit of the block before.
    """
    before = sorted(serial for serial in commits if serial < new)
    if not before:
        return []
    serials = [before[-1]]
    for level in LEVELS:
        group = before[-1] // level
        if group != new // level:
            serials.append(next(serial for serial in before if serial // level == group))
    return list(dict.fromkeys(serials))


def first_head(serial: int, commit: str) -> Static:
    """Return a head with the commit `commit` of this serial, and no file."""
    return Static({serial: commit}, ())


def advance(head: Static, serial: int, commit: str, new_steps: Iterable[Step]) -> Advanced:
    """Return the head with one more commit, and `new_steps` to it.

    If it begins another block of `BLOCK` serials, steps of the one before are moved to `closed`.
    """
    commits = {serial: commit, **head.commits}
    steps = (*head.steps, *new_steps)
    finished = head.newest // BLOCK
    if finished == serial // BLOCK:
        return Advanced(Static(commits, steps, head.lists), None)
    firsts = _firsts(commits)
    between = [step for step in steps if step.old == NOTHING or {step.old, step.new} <= firsts]
    moved = [step for step in steps if step.old // BLOCK == finished and step not in between]
    closed = Static(_commits_of(commits, moved), tuple(moved)) if moved else None
    staying = [step for step in steps if step in between or step.new == serial]
    named_serials = {*firsts, serial, *_commits_of(commits, staying)}
    commits = {each: commits[each] for each in commits if each in named_serials}
    return Advanced(Static(commits, tuple(staying), head.lists), closed)


def add_list(head: Static, closed: Static, file: StaticFile) -> Static:
    """Return the head with a reference to the list `file`, to which `closed` was written."""
    olds = [step.old for step in closed.steps]
    return head._replace(lists=(*head.lists, ListOf(min(olds), max(olds), file)))


def set_full_pack(head: Static, file: StaticFile) -> Static:
    """Return the head with `file` as the pack with all of the newest commit, the only such pack."""
    steps = tuple(step for step in head.steps if step.old != NOTHING)
    return head._replace(steps=(*steps, Step(NOTHING, head.newest, file)))


def drop_older(head: Static, floor: int) -> Static:
    """Return the head without steps, lists and commits from before the serial `floor`.

    The newest commit stays.
    """
    steps = tuple(step for step in head.steps if (step.old or step.new) >= floor)
    lists = tuple(each for each in head.lists if each.last >= floor)
    commits = {
        serial: commit
        for serial, commit in head.commits.items()
        if serial >= floor or serial == head.newest
    }
    return Static(commits, steps, lists)


def find_full_pack(head: Static) -> Step | None:
    """Return the step whose pack needs no former commit, or None if the head has none."""
    return next((step for step in head.steps if step.old == NOTHING), None)


def unite(front: Static, rest: Static) -> Static:
    """Return the head `front` joined with `rest`, the list of the rest that it names."""
    commits = {**front.commits, **rest.commits}
    old = [step for step in rest.steps if step.old != NOTHING or find_full_pack(front) is None]
    steps = dict.fromkeys((*front.steps, *old))
    lists = [each for each in front.lists if each.first != NOTHING]
    return Static(
        {serial: commits[serial] for serial in sorted(commits, reverse=True)},
        tuple(steps),
        (*rest.lists, *lists),
    )


def is_small(head: Static) -> bool:
    """True if a head is small enough to have no list."""
    return len(head.commits) <= _SMALL


def is_outdated(rest: Static, head: Static) -> bool:
    """True if the list `rest` must be written again: the head is in another group of 8 serials."""
    return rest.newest // _GROUP != head.newest // _GROUP


def make_front(head: Static, rest: Static, file: StaticFile) -> Static:
    """Return the head with `file` named in place of what its list `rest` has; recent steps stay."""
    floor = sorted(head.commits)[-_RECENT - 1 :][0]
    steps = tuple(step for step in head.steps if step not in rest.steps or step.old >= floor)
    lists = tuple(each for each in head.lists if each not in rest.lists)
    commits = {head.newest: head.commits[head.newest], **_commits_of(head.commits, steps)}
    return Static(commits, steps, (ListOf(NOTHING, rest.newest, file), *lists))


def list_of_rest(front: Static) -> ListOf | None:
    """Return the reference of a head to the list of the rest, or None without such a list."""
    return next((each for each in front.lists if each.first == NOTHING), None)


def _firsts(commits: Iterable[int]) -> set[int]:
    """Return the first of `commits` in each block of `BLOCK` serials."""
    firsts: dict[int, int] = {}
    for serial in sorted(commits):
        firsts.setdefault(serial // BLOCK, serial)
    return set(firsts.values())


def _commits_of(commits: Mapping[int, str], steps: Iterable[Step]) -> dict[int, str]:
    """Return those of `commits` (by serial) at which one of `steps` begins or ends."""
    serials = {serial for step in steps for serial in (step.old, step.new)}
    return {serial: commit for serial, commit in commits.items() if serial in serials}
