"""How long what is gone stays: deletions wait until nobody can hold an index that names them.

Pure.  Pointers go at once: from then on nobody begins to read what they led to.  Indices and
payload wait; so does a directory in which something waits.  A directory that is renamed
leaves a symlink behind for as long.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from huai_client.diff.candidate import Candidate, Move
from huai_client.plan.operations import Plan, Remove
from huai_client.state.delayed_deletion import DelayedDeletion
from huai_schema.entries import File, Symlink
from huai_schema.paths import RelPath, ancestors, sort_key

DELAYED_MOST = 1_000_000
"""Paths that wait at a time; with more, those that wait longest go before their time."""


class Grace(NamedTuple):
    """What decides when something is deleted."""

    now: int
    """Seconds since the epoch."""
    patience: int
    """Seconds that deletions wait."""
    at_once: Callable[[Remove], bool]
    """Whether a deletion never waits."""
    named: Callable[[RelPath], bool]
    """Whether the wanted snapshot names a path."""


class PutOff(NamedTuple):
    """A plan that deletes what is due, and what it leaves."""

    plan: Plan
    waiting: list[DelayedDeletion]
    """What still has to wait, by path."""
    put_off: int
    """How many deletions of the plan as it was will wait."""


def back_again(candidate: Candidate, digest_of: Callable[[RelPath], bytes]) -> Candidate:
    """A candidate at a path that waits: no snapshot at hand says what stands there.

    So size and time prove nothing, and `digest_of` reads it.  It may share its inode with
    another name, which a change would change as well; then it has to get one of its own.
    """
    have, wanted = candidate.have, candidate.wanted
    if not isinstance(have, File) or not isinstance(wanted, File) or wanted.link is not None:
        return candidate
    if candidate.links > 1:
        return candidate._replace(differing=candidate.differing | {"link"})
    if have.size == wanted.size and wanted.digest is not None:
        return candidate._replace(digest=digest_of(candidate.path))
    return candidate


def put_off(plan: Plan, waiting: Iterable[DelayedDeletion], grace: Grace) -> PutOff:
    """Take the deletions out of `plan` that have to wait, and put in those that are due."""
    known = {each.path: each for each in _moved(waiting, plan.moves) if not grace.named(each.path)}
    cleared = {item.path for item in plan.clear}
    in_the_way = [each for each in known.values() if not cleared.isdisjoint(ancestors(each.path))]
    for path in cleared | {each.path for each in in_the_way}:
        known.pop(path, None)
    clear = {item.path: item for item in (*plan.clear, *map(_removal, in_the_way))}
    now = [item for item in plan.removals if grace.at_once(item)]
    new = {item.path for item in plan.removals} - {item.path for item in now} - known.keys()
    for item in plan.removals:
        if item.path in new:
            known[item.path] = DelayedDeletion(item.path, item.directory, 0)
    forwards = _forwards(plan.moves, grace) if grace.patience else {}
    for path in forwards:
        known[path] = DelayedDeletion(path, directory=False, since=0)
    later = _later(known, grace)
    due = [_removal(each) for path, each in known.items() if path not in later]
    changed = replace(
        plan,
        clear=_deepest_first(clear.values()),
        removals=_deepest_first([*now, *due]),
        forwards=forwards,
    )
    ordered = sorted(later.values(), key=lambda each: sort_key(each.path))
    return PutOff(changed, ordered, len(new & later.keys()))


def _later(known: dict[RelPath, DelayedDeletion], grace: Grace) -> dict[RelPath, DelayedDeletion]:
    """What is not due, and the directories in which any of that is."""
    fresh = [each for each in known.values() if _has_to_wait(each, grace)]
    if len(fresh) > DELAYED_MOST:
        fresh = sorted(fresh, key=lambda each: each.since or grace.now)[-DELAYED_MOST:]
    found = {each.path: each for each in fresh}
    for path in list(found):
        for above in ancestors(path):
            if above in known:
                found[above] = known[above]
    return found


def _has_to_wait(waiting: DelayedDeletion, grace: Grace) -> bool:
    return grace.patience > 0 and (waiting.since or grace.now) + grace.patience > grace.now


def _moved(waiting: Iterable[DelayedDeletion], moves: list[Move]) -> list[DelayedDeletion]:
    """Where the paths are after the renames."""
    targets = {move.old: move.new for move in moves}
    found: list[DelayedDeletion] = []
    for each in waiting:
        old = next((above for above in ancestors(each.path) if above in targets), None)
        if old is not None:
            path = RelPath(targets[old] + each.path[len(old) :])
            found.append(each._replace(path=path))
        else:
            found.append(each)
    return found


def _forwards(moves: list[Move], grace: Grace) -> dict[RelPath, Symlink]:
    """Symlinks from where directories were to where they are."""
    return {
        move.old: Symlink(move.old, _relative(move.old, move.new), grace.now * 10**9)
        for move in moves
        if not grace.named(move.old)
    }


def _relative(old: RelPath, new: RelPath) -> bytes:
    """A symlink's target at `old` that leads to `new`."""
    here, there = old.split(b"/")[:-1], new.split(b"/")
    shared = 0
    while shared < len(here) and shared < len(there) - 1 and here[shared] == there[shared]:
        shared += 1
    return b"/".join([b".."] * (len(here) - shared) + there[shared:])


def _removal(waiting: DelayedDeletion) -> Remove:
    return Remove(waiting.path, waiting.directory)


def _deepest_first(removals: Iterable[Remove]) -> list[Remove]:
    return sorted(removals, key=lambda item: sort_key(item.path), reverse=True)
