"""Delayed deletions: files stay for a while after the upstream deleted them (`delete_after`).

Pure.  A reader that holds an old index can still fetch what the index names.  Pointers are deleted
at once, so that nobody starts from an old one.  Indices and payload are delayed, and the
directories that hold any.  A renamed directory leaves a symlink at its old path for as long.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from stat import S_ISDIR
from typing import NamedTuple

from huai_client.diff.candidate import Candidate, Move, Remove, TreeDiff
from huai_client.plan.operations import Plan
from huai_client.plan.reader import TreeReader, is_directory
from huai_client.state.delayed_deletion import DelayedDeletion
from huai_schema.entries import File, Symlink
from huai_schema.paths import RelPath, ancestors, parent, path_order

MOST = 1_000_000
"""Of delayed deletions at a time; if there are more, the oldest are made early."""


class DelayPolicy(NamedTuple):
    """What decides when a deletion is made."""

    now: int
    """Seconds since the epoch."""
    delay: int
    """Seconds between the run that finds a deletion and the deletion."""
    at_once: Callable[[Remove], bool]
    """Whether a deletion is never delayed."""
    named: Callable[[RelPath], bool]
    """Whether the wanted snapshot names a path."""


class Delayed(NamedTuple):
    """A plan that deletes what is due, and the deletions that remain."""

    plan: Plan
    pending: list[DelayedDeletion]
    """Deletions of later runs, in the order of their paths."""
    delayed: int
    """How many deletions of the given plan were delayed by this one."""


def with_reappeared(
    diff: TreeDiff, pending: Iterable[DelayedDeletion], digest_of: Callable[[RelPath], bytes]
) -> TreeDiff:
    """The comparison without taking delayed deletions for extraneous.

    The content at such a path is unknown; if the path is wanted again, `digest_of` reads it.
    """
    delayed = {each.path for each in pending}
    if not delayed:
        return diff
    return diff._replace(
        candidates=[
            reappeared(each, digest_of) if each.path in delayed else each
            for each in diff.candidates
        ],
        extraneous=[path for path in diff.extraneous if path not in delayed],
    )


def reappeared(candidate: Candidate, digest_of: Callable[[RelPath], bytes]) -> Candidate:
    """`candidate`, whose deletion was delayed: no snapshot at hand describes what stands there.

    Size and time are no proof of its content, so `digest_of` reads it.  If it shares its inode with
    another name, it needs an inode of its own: a change would reach the other name as well.
    """
    have, wanted = candidate.have, candidate.expected
    if not isinstance(have, File) or not isinstance(wanted, File) or wanted.link is not None:
        return candidate
    if candidate.links > 1:
        return candidate._replace(differing=candidate.differing | {"link"})
    if have.size == wanted.size and wanted.digest is not None:
        return candidate._replace(digest=digest_of(candidate.path))
    return candidate


def delay_deletions(plan: Plan, pending: Iterable[DelayedDeletion], policy: DelayPolicy) -> Delayed:
    """Take deletions out of `plan` that have to wait, and add delayed ones that are due.

    `pending` has paths as they are after the moves of `plan`.
    """
    known = {each.path: each for each in pending if not policy.named(each.path)}
    if policy.delay <= 0 and not known:
        return Delayed(plan, [], 0)
    cleared = {item.path for item in plan.clear}
    in_the_way = [each for each in known.values() if not cleared.isdisjoint(ancestors(each.path))]
    for path in cleared | {each.path for each in in_the_way}:
        known.pop(path, None)
    clear = {item.path: item for item in (*plan.clear, *map(_removal, in_the_way))}
    # What the commit names goes because it is left out; waiting would keep it for ever.
    now = [each for each in plan.removals if policy.at_once(each) or policy.named(each.path)]
    new = {item.path for item in plan.removals} - {item.path for item in now} - known.keys()
    for item in plan.removals:
        if item.path in new:
            known[item.path] = DelayedDeletion(item.path, item.directory, 0)
    forwards = _forwards(plan.moves, policy) if policy.delay else {}
    for path in forwards:
        known[path] = DelayedDeletion(path, directory=False, since=0)
    later = _later(known, policy)
    due = [_removal(each) for path, each in known.items() if path not in later]
    changed = replace(
        plan,
        clear=_deepest_first(clear.values()),
        removals=_deepest_first([*now, *due]),
        forwards=forwards,
    )
    ordered = sorted(later.values(), key=lambda each: path_order(each.path))
    return Delayed(changed, ordered, len(new & later.keys()))


def due_by_run(plan: Plan, pending: Iterable[DelayedDeletion]) -> list[list[Remove]]:
    """The delayed deletions that `plan` makes, one list for each run that delayed them."""
    since = {each.path: each.since for each in pending}
    runs: dict[int, list[Remove]] = defaultdict(list)
    for item in plan.removals:
        if item.path in since:
            runs[since[item.path]].append(item)
    return list(runs.values())


def present_and_gone(
    pending: Iterable[DelayedDeletion], tree: TreeReader
) -> tuple[list[DelayedDeletion], list[DelayedDeletion]]:
    """Delayed deletions whose path still has its kind, and those whose path is gone or changed."""
    present: list[DelayedDeletion] = []
    gone: list[DelayedDeletion] = []
    for each in pending:
        status = tree.stat(each.path)
        there = status is not None and S_ISDIR(status.st_mode) == each.directory
        (present if there else gone).append(each)
    return present, gone


def emptied_directories(gone: Iterable[DelayedDeletion], tree: TreeReader) -> set[RelPath]:
    """Present directories in which paths of `gone` were: an interrupted run changed their times."""
    folders = {parent(each.path) for each in gone}
    return {folder for folder in folders if is_directory(tree, folder)}


def _later(
    known: dict[RelPath, DelayedDeletion], policy: DelayPolicy
) -> dict[RelPath, DelayedDeletion]:
    """Deletions that are not due, and those of the directories above them."""
    fresh = [each for each in known.values() if not _is_due(each, policy)]
    if len(fresh) > MOST:
        fresh = sorted(fresh, key=lambda each: each.since or policy.now)[-MOST:]
    found = {each.path: each for each in fresh}
    for path in list(found):
        for above in ancestors(path):
            if above in known:
                found[above] = known[above]
    return found


def _is_due(pending: DelayedDeletion, policy: DelayPolicy) -> bool:
    return policy.delay <= 0 or (pending.since or policy.now) + policy.delay <= policy.now


def moved_along(pending: Iterable[DelayedDeletion], moves: list[Move]) -> list[DelayedDeletion]:
    """`pending` with the paths that they have after the renames."""
    targets = {move.old: move.new for move in moves}
    found: list[DelayedDeletion] = []
    for each in pending:
        old = next((above for above in ancestors(each.path) if above in targets), None)
        if old is not None:
            path = RelPath(targets[old] + each.path[len(old) :])
            found.append(each._replace(path=path))
        else:
            found.append(each)
    return found


def _forwards(moves: list[Move], policy: DelayPolicy) -> dict[RelPath, Symlink]:
    """Symlinks from the old paths of directories to the new ones, by old path."""
    return {
        move.old: Symlink(move.old, _relative(move.old, move.new), policy.now * 10**9)
        for move in moves
        if not policy.named(move.old)
    }


def _relative(old: RelPath, new: RelPath) -> bytes:
    """The target of a symlink at `old` that leads to `new`."""
    here, there = old.split(b"/")[:-1], new.split(b"/")
    shared = 0
    while shared < len(here) and shared < len(there) - 1 and here[shared] == there[shared]:
        shared += 1
    return b"/".join([b".."] * (len(here) - shared) + there[shared:])


def _removal(pending: DelayedDeletion) -> Remove:
    return Remove(pending.path, pending.directory)


def _deepest_first(removals: Iterable[Remove]) -> list[Remove]:
    return sorted(removals, key=lambda item: path_order(item.path), reverse=True)
