"""Delayed deletions: files stay for a while after the upstream deleted them (`delete_after`).

Pure.  A reader with an old index can still fetch the files that it names.  Pointers are deleted
at once, so that no reader starts from an old one.  Indices and payload are delayed, and the
directories that hold any.  A renamed directory leaves a symlink at its old path for as long.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from stat import S_ISDIR
from typing import NamedTuple

from huai_client.diff.candidate import Candidate, Move, Remove, TreeDiff
from huai_client.plan.operations import Plan
from huai_client.plan.protect import ReadableTree, is_directory
from huai_client.state.delayed_deletion import DelayedDeletion
from huai_schema.entries import File, Symlink
from huai_schema.paths import RelPath, after_moves, ancestors, parent, path_order

MOST = 1_000_000
"""Delayed deletions at a time; if there are more, the oldest are made early."""


class DelayPolicy(NamedTuple):
    """The rules that decide when a deletion is made."""

    now: int
    """Seconds since the epoch."""
    delay: int
    """Seconds between the run that finds a deletion and the deletion."""
    at_once: Callable[[Remove], bool]
    """True for a deletion that is never delayed."""
    is_named: Callable[[RelPath], bool]
    """True for a path of the wanted snapshot that the filter includes."""


class Delayed(NamedTuple):
    """A plan with the deletions that are due, and the deletions that remain."""

    plan: Plan
    pending: list[DelayedDeletion]
    """Deletions of later runs, in the order of their paths."""
    delayed: int
    """The number of deletions that were delayed now."""


def with_reappeared(
    diff: TreeDiff, pending: Iterable[DelayedDeletion], digest_of: Callable[[RelPath], bytes]
) -> TreeDiff:
    """Return the comparison in which delayed deletions are not extraneous.

    The content at such a path is unknown; if the path is wanted again, `digest_of` reads it.
    """
    delayed = {each.path for each in pending}
    if not delayed:
        return diff
    return diff._replace(
        candidates=[
            read_reappeared(each, digest_of) if each.path in delayed else each
            for each in diff.candidates
        ],
        extraneous=[path for path in diff.extraneous if path not in delayed],
    )


def read_reappeared(candidate: Candidate, digest_of: Callable[[RelPath], bytes]) -> Candidate:
    """Return `candidate` with its content read, as no known snapshot describes the present file.

    Size and time do not prove its content, so `digest_of` reads it, if the wanted file has that
    size and a digest.  If it shares its inode with another name, it is not read and needs an inode
    of its own: a change would reach the other name as well.
    """
    have, target = candidate.have, candidate.expected
    if not isinstance(have, File) or not isinstance(target, File) or target.link is not None:
        return candidate
    if candidate.links > 1:
        return candidate._replace(differing=candidate.differing | {"link"})
    if have.size == target.size and target.digest is not None:
        return candidate._replace(digest=digest_of(candidate.path))
    return candidate


def delay_deletions(plan: Plan, pending: Iterable[DelayedDeletion], policy: DelayPolicy) -> Delayed:
    """Return `plan` without deletions that have to wait, and with delayed ones that are due.

    `pending` has paths as they are after the moves of `plan`; those that the wanted snapshot names
    are dropped.  Until a delay is over, a moved directory has a symlink at its old path.
    """
    delayed = {each.path: each for each in pending if not policy.is_named(each.path)}
    if policy.delay <= 0 and not delayed:
        return Delayed(plan, [], 0)
    cleared = {item.path for item in plan.clear}
    in_the_way = [each for each in delayed.values() if not cleared.isdisjoint(ancestors(each.path))]
    for path in cleared | {each.path for each in in_the_way}:
        delayed.pop(path, None)
    clear = {item.path: item for item in (*plan.clear, *map(_removal, in_the_way))}
    # Paths that the commit names are deleted by a filter; waiting would keep them for ever.
    now = [each for each in plan.removals if policy.at_once(each) or policy.is_named(each.path)]
    new = {item.path for item in plan.removals} - {item.path for item in now} - delayed.keys()
    for item in plan.removals:
        if item.path in new:
            delayed[item.path] = DelayedDeletion(item.path, item.directory, 0)
    forwards = _forwards(plan.moves, policy) if policy.delay else {}
    for path in forwards:
        delayed[path] = DelayedDeletion(path, directory=False, since=0)
    later = _later(delayed, policy)
    due = [_removal(each) for path, each in delayed.items() if path not in later]
    changed = replace(
        plan,
        clear=_deepest_first(clear.values()),
        removals=_deepest_first([*now, *due]),
        forwards=forwards,
    )
    ordered = sorted(later.values(), key=lambda each: path_order(each.path))
    return Delayed(changed, ordered, len(new & later.keys()))


def due_by_run(plan: Plan, pending: Iterable[DelayedDeletion]) -> list[list[Remove]]:
    """Return the delayed deletions that `plan` makes, one list for each run that delayed them."""
    since = {each.path: each.since for each in pending}
    runs: dict[int, list[Remove]] = defaultdict(list)
    for item in plan.removals:
        if item.path in since:
            runs[since[item.path]].append(item)
    return list(runs.values())


def partition_present(
    pending: Iterable[DelayedDeletion], tree: ReadableTree
) -> tuple[list[DelayedDeletion], list[DelayedDeletion]]:
    """Return two lists: deletions whose path still exists with its kind, and the others."""
    present: list[DelayedDeletion] = []
    vanished: list[DelayedDeletion] = []
    for deletion in pending:
        status = tree.stat(deletion.path)
        is_present = status is not None and S_ISDIR(status.st_mode) == deletion.directory
        (present if is_present else vanished).append(deletion)
    return present, vanished


def find_emptied_directories(
    vanished: Iterable[DelayedDeletion], tree: ReadableTree
) -> set[RelPath]:
    """Return the parents of `vanished` paths that exist: an interrupted run changed their times."""
    folders = {parent(each.path) for each in vanished}
    return {folder for folder in folders if is_directory(tree, folder)}


def _later(
    delayed: dict[RelPath, DelayedDeletion], policy: DelayPolicy
) -> dict[RelPath, DelayedDeletion]:
    """Return what stays delayed: at most `MOST` deletions, not due, and directories above them."""
    fresh = [each for each in delayed.values() if not _is_due(each, policy)]
    if len(fresh) > MOST:
        fresh = sorted(fresh, key=lambda each: each.since or policy.now)[-MOST:]
    later = {each.path: each for each in fresh}
    for path in list(later):
        for above in ancestors(path):
            if above in delayed:
                later[above] = delayed[above]
    return later


def _is_due(pending: DelayedDeletion, policy: DelayPolicy) -> bool:
    return policy.delay <= 0 or (pending.since or policy.now) + policy.delay <= policy.now


def follow_moves(pending: Iterable[DelayedDeletion], moves: list[Move]) -> list[DelayedDeletion]:
    """Return `pending` with the paths that they have after the renames."""
    targets = {move.old: move.new for move in moves}
    return [each._replace(path=after_moves(each.path, targets)) for each in pending]


def _forwards(moves: list[Move], policy: DelayPolicy) -> dict[RelPath, Symlink]:
    """Return symlinks from the old paths of directories to the new ones, by old path.

    Leaves out old paths that the wanted snapshot names.
    """
    return {
        move.old: Symlink(move.old, _relative(move.old, move.new), policy.now * 10**9)
        for move in moves
        if not policy.is_named(move.old)
    }


def _relative(old: RelPath, new: RelPath) -> bytes:
    """Return the target of a symlink at `old` that leads to `new`."""
    folders, target = old.split(b"/")[:-1], new.split(b"/")
    shared = 0
    while shared < len(folders) and shared < len(target) - 1 and folders[shared] == target[shared]:
        shared += 1
    return b"/".join([b".."] * (len(folders) - shared) + target[shared:])


def _removal(pending: DelayedDeletion) -> Remove:
    return Remove(pending.path, pending.directory)


def _deepest_first(removals: Iterable[Remove]) -> list[Remove]:
    return sorted(removals, key=lambda item: path_order(item.path), reverse=True)
