"""A repository as it will be, for a program that proves it: a folder of symlinks.

It has, under their final names, the indices and pointers that change, from the staging area, and
the other pointers next to a changing pointer, from the tree.  Rule to keep: each symlink leads to a
regular file of the staging area or the tree.  Symlinks of the repository are resolved here, so that
none can lead a program anywhere else.
"""

import os
import stat
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from huai_client.diff.files import paths, within
from huai_client.plan.operations import PAYLOAD, POINTERS, Plan
from huai_client.plan.order import PackageRepository, PublishOrder
from huai_client.tree import PathError, View
from huai_schema.entries import Entry, File, Symlink
from huai_schema.paths import ROOT, RelPath, join, parent, relative

_STEP = 20_000
"""The number of paths to handle at a time: Python values take memory."""


class Changed(NamedTuple):
    """A repository in which pointers change."""

    repository: PackageRepository
    entries: dict[RelPath, File | Symlink]
    """The indices and pointers to write."""
    pointers: set[RelPath]
    """The pointers among `entries`."""
    removed: set[RelPath]
    """The pointers to delete."""

    @property
    def folders(self) -> set[RelPath]:
        """The directories in which pointers change."""
        return {parent(path) for path in self.pointers | self.removed}


def find_changed(plan: Plan, order: PublishOrder, profiles: Container[str]) -> list[Changed]:
    """Return the repositories of some `profiles` in which `plan` changes pointers.

    Volatile files do not count.
    """
    repositories: dict[RelPath, Changed] = {}

    def repository_of(path: RelPath, *, symlink: bool) -> Changed | None:
        """Return the repository to be proved around a path, or None."""
        around = order.placement_of(path, symlink=symlink).repository
        if around is None or around.profile not in profiles or order.is_volatile(path):
            return None
        return repositories.setdefault(around.top, Changed(around, {}, set(), set()))

    for path, entry, stage in _written(plan, order):
        changed = repository_of(path, symlink=isinstance(entry, Symlink))
        if changed is not None:
            changed.entries[path] = entry
            if stage == POINTERS:
                changed.pointers.add(path)
    for item in (*plan.clear, *plan.removals):
        if not item.directory and order.stage_of(item.path) == POINTERS:
            changed = repository_of(item.path, symlink=False)
            if changed is not None:
                changed.removed.add(item.path)
    return [each for each in repositories.values() if each.pointers or each.removed]


def _written(plan: Plan, order: PublishOrder) -> Iterator[tuple[RelPath, File | Symlink, int]]:
    """Yield path, entry and stage of what is written, payload aside."""
    for stage in plan.stages:
        for files in (stage.fetches, stage.links):
            yield from _without_payload(files, order, symlink=False)
        yield from _without_payload(stage.symlinks, order, symlink=True)


def _without_payload(
    entries: Sequence[Entry], order: PublishOrder, *, symlink: bool
) -> Iterator[tuple[RelPath, File | Symlink, int]]:
    """Yield path, entry and stage of entries that are not payload."""
    for begin in range(0, len(entries), _STEP):
        some = entries[begin : begin + _STEP]
        names = [each.path for each in some] if symlink else [*paths(some)]
        stages = order.stages_of([(path, symlink) for path in names])
        for position, stage in enumerate(stages):
            if stage != PAYLOAD:
                yield names[position], some[position], stage  # type: ignore[misc]


_HOPS = 8
_Contents = Mapping[RelPath, bytes | Symlink]
"""The path of a file's content, or a symlink, by path in the tree."""


class RepositoryView(dict[RelPath, bytes]):
    """A map from paths in the tree to the paths of their future content."""

    changed: frozenset[RelPath]
    """The paths whose content changes, or that are deleted."""


def build_view(
    changed: Changed,
    plan: Plan,
    order: PublishOrder,
    tree: View,
    staged: Callable[[File], tuple[int, bytes] | None],
) -> RepositoryView:
    """Return the files of `changed` for a program; `staged` finds complete staged content.

    A file without content, and a symlink that leads to no known file, is left out.
    """
    contents: dict[RelPath, bytes | Symlink] = {
        **_in_tree(changed, order, tree),
        **_in_staging(changed, plan, tree, staged),
    }
    view = RepositoryView()
    ends: dict[RelPath, RelPath] = {}
    for path in contents:
        end = _end(path, contents)
        if end is not None:
            ends[path] = end
            content = contents[end]
            assert isinstance(content, bytes)  # noqa: S101 - `_end` leads to no symlink
            view[path] = content
    new = {path for path, end in ends.items() if path in changed.entries or end in changed.entries}
    view.changed = frozenset(new | changed.removed)
    return view


def lay_out(view: Mapping[RelPath, bytes], top: RelPath, folder: Path) -> None:
    """Make `folder`, with a symlink for each file of `view`, at its path below `top`."""
    root = os.fsencode(folder)
    os.makedirs(root, mode=0o700)
    for path, content in view.items():
        link = os.path.join(root, relative(path, top))
        os.makedirs(os.path.dirname(link), mode=0o700, exist_ok=True)
        os.symlink(content, link)


def _in_staging(
    changed: Changed, plan: Plan, tree: View, staged: Callable[[File], tuple[int, bytes] | None]
) -> dict[RelPath, bytes | Symlink]:
    """Return the changed symlinks, and the places of files with staged content, by path.

    A hardlink has the content of its leader; files without content are left out.
    """
    contents: dict[RelPath, bytes | Symlink] = {}
    leaders: dict[RelPath, list[RelPath]] = {}
    for path, entry in changed.entries.items():
        if isinstance(entry, Symlink):
            contents[path] = entry
        else:
            leaders.setdefault(entry.link or path, []).append(path)
    for file in within(plan.fetches, leaders):
        staged_place = staged(file)
        followers = leaders.pop(file.path)
        if staged_place is not None:
            handle, name = staged_place
            content = os.path.join(os.readlink(b"/proc/self/fd/%d" % handle), name)
            contents.update(dict.fromkeys(followers, content))
    for leader, followers in leaders.items():
        if _is_file(tree, leader):  # a hardlink to an existing file
            contents.update(dict.fromkeys(followers, _path_in(tree, leader)))
    return contents


def _in_tree(changed: Changed, order: PublishOrder, tree: View) -> dict[RelPath, bytes | Symlink]:
    """Return the pointers that stay in the directories in which others change.

    Gives the path on disk of a file, or the symlink, by the path in the tree.
    """
    contents: dict[RelPath, bytes | Symlink] = {}
    for folder in changed.folders:
        if not tree.is_directory(folder):
            continue
        names = (join(folder, name) for name in tree.listing(folder)[0])
        for path in names:
            if path in changed.entries or path in changed.removed:
                continue
            if _is_file(tree, path):
                if order.stage_of(path) == POINTERS:
                    contents[path] = _path_in(tree, path)
            elif order.stage_of(path, symlink=True) == POINTERS and _is_symlink(tree, path):
                contents[path] = Symlink(path, tree.target(path), 0)
    return contents


def _end(path: RelPath, contents: _Contents) -> RelPath | None:
    """Return the known file that `path` leads to, over at most eight symlinks; else None.

    None as well for a target that is absolute, leads above the root, or has `..` after a name: the
    kernel may find another file there.
    """
    for _ in range(_HOPS):
        content = contents.get(path)
        if content is None or isinstance(content, bytes):
            return None if content is None else path
        above, names = (
            parent(path),
            [name for name in content.target.split(b"/") if name not in {b"", b"."}],
        )
        while names and names[0] == b".." and above != ROOT:
            above = parent(above)
            del names[0]
        if content.target.startswith(b"/") or b".." in names or not names:
            return None
        path = join(above, b"/".join(names))
    return None


def _path_in(tree: View, path: RelPath) -> bytes:
    return os.path.join(os.fsencode(os.path.realpath(tree.dest)), path)


def _is_file(tree: View, path: RelPath) -> bool:
    return _has_type(tree, path, stat.S_IFREG)


def _is_symlink(tree: View, path: RelPath) -> bool:
    return _has_type(tree, path, stat.S_IFLNK)


def _has_type(tree: View, path: RelPath, kind: int) -> bool:
    """Return True if the path has this type; False if it is unreadable."""
    try:
        status = tree.stat(path)
    except PathError:
        return False
    return status is not None and stat.S_IFMT(status.st_mode) == kind
