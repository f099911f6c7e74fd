"""A repository as it will be, for a program that is to prove it: a folder of symlinks.

In it are, under their final names, the indices and pointers that change, from the staging area, and
the other pointers beside a pointer that changes, from the tree.  Rule to keep: each symlink leads
to a regular file of the staging area or the tree.  Where a symlink of the repository leads is found
out here, so that none can lead a program anywhere else.
"""

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from huai_client.diff.files import within
from huai_client.plan.operations import POINTERS, Plan
from huai_client.plan.order.order import PublishOrder
from huai_client.proofs.changed import Changed
from huai_client.tree import PathError, View
from huai_schema.entries import File, Symlink
from huai_schema.paths import RelPath, join, parent, relative

_HOPS = 8
_Places = Mapping[RelPath, bytes | Symlink]
"""By path: where the content of a file is, or a symlink."""


class Shown(dict[RelPath, bytes]):
    """By path in the tree: where the content is that will stand there."""

    changed: frozenset[RelPath]
    """The paths at which there is other content than before, or something is deleted."""


def shown(
    changed: Changed,
    plan: Plan,
    order: PublishOrder,
    tree: View,
    staged: Callable[[File], tuple[int, bytes] | None],
) -> Shown:
    """What a program gets to see of `changed`; `staged` says where content is, if it is whole."""
    places: dict[RelPath, bytes | Symlink] = {
        **_in_tree(changed, order, tree),
        **_in_staging(changed, plan, tree, staged),
    }
    found = Shown()
    ends: dict[RelPath, RelPath] = {}
    for path in places:
        end = _end(path, places)
        if end is not None:
            ends[path] = end
            content = places[end]
            assert isinstance(content, bytes)  # noqa: S101 - `_end` leads to no symlink
            found[path] = content
    new = {path for path, end in ends.items() if path in changed.entries or end in changed.entries}
    found.changed = frozenset(new | changed.removed)
    return found


def lay_out(found: Mapping[RelPath, bytes], top: RelPath, folder: Path) -> None:
    """Make `folder`, with all that is shown of the repository at `top`."""
    root = os.fsencode(folder)
    os.makedirs(root, mode=0o700)
    for path, content in found.items():
        place = os.path.join(root, relative(path, top))
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        os.symlink(content, place)


def _in_staging(
    changed: Changed,
    plan: Plan,
    tree: View,
    staged: Callable[[File], tuple[int, bytes] | None],
) -> dict[RelPath, bytes | Symlink]:
    places: dict[RelPath, bytes | Symlink] = {}
    leaders: dict[RelPath, list[RelPath]] = {}
    for path, entry in changed.entries.items():
        if isinstance(entry, Symlink):
            places[path] = entry
        else:
            leaders.setdefault(entry.link or path, []).append(path)
    for file in within(plan.fetches, leaders):
        place = staged(file)
        followers = leaders.pop(file.path)
        if place is not None:
            handle, name = place
            content = os.path.join(os.readlink(b"/proc/self/fd/%d" % handle), name)
            places.update(dict.fromkeys(followers, content))
    for leader, followers in leaders.items():
        if _is_file(tree, leader):  # a hardlink to what stands there already
            places.update(dict.fromkeys(followers, _standing(tree, leader)))
    return places


def _in_tree(changed: Changed, order: PublishOrder, tree: View) -> dict[RelPath, bytes | Symlink]:
    """The pointers that stay, in the directories in which others change."""
    places: dict[RelPath, bytes | Symlink] = {}
    for folder in changed.folders:
        status = tree.stat(folder)
        if status is None or not stat.S_ISDIR(status.st_mode):
            continue
        names = (join(folder, name) for name in tree.listing(folder)[0])
        for path in names:
            if path in changed.entries or path in changed.removed:
                continue
            if _is_file(tree, path):
                if order.stage_of(path) == POINTERS:
                    places[path] = _standing(tree, path)
            elif order.stage_of(path, symlink=True) == POINTERS and _is_symlink(tree, path):
                places[path] = Symlink(path, tree.target(path), 0)
    return places


def _end(path: RelPath, places: _Places) -> RelPath | None:
    """The file that `path` leads to; None: to none that is known."""
    for _ in range(_HOPS):
        place = places.get(path)
        if place is None or isinstance(place, bytes):
            return None if place is None else path
        path = RelPath(os.path.normpath(os.path.join(b"/", parent(path), place.target))[1:])
    return None


def _standing(tree: View, path: RelPath) -> bytes:
    return os.path.join(os.fsencode(os.path.realpath(tree.dest)), path)


def _is_file(tree: View, path: RelPath) -> bool:
    return _has_type(tree, path, stat.S_IFREG)


def _is_symlink(tree: View, path: RelPath) -> bool:
    return _has_type(tree, path, stat.S_IFLNK)


def _has_type(tree: View, path: RelPath, kind: int) -> bool:
    try:
        status = tree.stat(path)
    except PathError:
        return False
    return status is not None and stat.S_IFMT(status.st_mode) == kind
