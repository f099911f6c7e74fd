"""Finds the new directories that one rename can publish, with everything below them.

Pure.  Such a directory is in the staging area as rsync made it, at its own path below the folder
of one run.  Below it the plan has directories, and files, hardlinks and symlinks of one stage, and
nothing else depends on their existence before them.  Links are made in the staging area, so the
target of a hardlink must be below the directory too.  The outermost directories are chosen.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from huai_client.config.modes import DefaultMode
from huai_client.diff.files import chosen, paths
from huai_client.plan.operations import Plan
from huai_client.tree import Places, WholeDirectory
from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import RelPath, join, parent


class NewSubtree(NamedTuple):
    """A new directory that is published at once."""

    directory: WholeDirectory
    make: list[RelPath]
    """The directory and those below it, parents first."""
    files: list[range]
    """Indices, among the files of the stage, of all files below it except hardlinks."""


_OWNER_MAY_ALL = 0o700
_ANY_DEPTH = 1 << 16
_Place = tuple[int, bytes]
"""A handle, and the path below it at which files are staged under their own paths."""


@dataclass(slots=True)
class _New:
    separate: bool = True
    """True if it cannot be published at once: its entries differ in stage or place, or the plan has
    no attributes for it."""
    stage: int | None = None
    """None while it holds no file."""
    place: _Place | None = None
    """None while no file below it is staged under its own path."""
    names: int = 0
    """The number of names in the staged directory, with its empty subdirectories."""
    depth: int = _ANY_DEPTH
    """Depth of the deepest directory above all its hardlinks and their targets."""
    files: list[range] = field(default_factory=list)
    other_files: list[tuple[int, bytes, RelPath]] = field(default_factory=list)
    links: list[File] = field(default_factory=list)
    symlinks: list[Symlink] = field(default_factory=list)

    def add(self, stage: int | None, place: _Place | None) -> None:
        """Add an entry of `stage`, staged below `place` under its own path; None for neither."""
        if self.stage is None:
            self.stage = stage
        if self.place is None:
            self.place = place
        if stage not in {None, self.stage} or place not in {None, self.place}:
            self.separate = True


def whole_directories(
    plan: Plan, staged: Callable[[Sequence[File]], Places], volatile: Collection[RelPath] = ()
) -> list[list[NewSubtree]]:
    """Return, by stage, the new directories of `plan` to publish by a rename each.

    `staged` locates files.
    `volatile` files come last in their stage, so none of them is published with a directory.
    """
    new: dict[bytes, _New] = {path: _New() for path in plan.make}
    for path in paths(plan.directories):
        if directory := new.get(path):
            directory.separate = False
    _add_files(plan, staged, new)
    if all(directory.place is None for directory in new.values()):
        return [[] for _ in plan.stages]  # none is in the staging area
    _add_links(plan, new)
    for path in (*(move.new for move in plan.moves), *volatile):
        if above := new.get(parent(path)):
            above.separate = True
    for path in reversed([*plan.make]):
        directory = new[path]
        if above := new.get(parent(path)):
            above.names += 1
            above.separate |= directory.separate
            above.depth = min(above.depth, directory.depth)
            above.add(directory.stage, directory.place)
    return _outermost(plan, new)


def _add_files(
    plan: Plan, staged: Callable[[Sequence[File]], Places], new: Mapping[bytes, _New]
) -> None:
    """Add the files of `plan`, by stage, to their directories in `new`, if those are new."""
    for number, stage in enumerate(plan.stages):
        places = staged(stage.fetches)
        for folder, begin, end, run in places.arrived.directories(stage.fetches):
            directory = new.get(folder)
            if directory is None:
                continue
            directory.files.append(range(begin, end))
            own_place = None if run is None else (places.runs, b"%d" % run)
            if own_place is not None and directory.place in {None, own_place}:
                directory.names += end - begin
                directory.add(number, own_place)
                continue
            directory.add(number, None)
            for position, path in enumerate(paths(stage.fetches[begin:end]), begin):
                if own_place is None:
                    other_file = places.finished, places.names[position], path
                else:
                    other_file = own_place[0], join(own_place[1], path), path
                directory.other_files.append(other_file)


def _add_links(plan: Plan, new: Mapping[bytes, _New]) -> None:
    """Add symlinks and hardlinks to the new directories that hold them."""
    for number, stage in enumerate(plan.stages):
        for symlink in stage.symlinks:
            if directory := new.get(parent(symlink.path)):
                directory.symlinks.append(symlink)
                directory.add(number, None)
        for link in stage.links:
            if directory := new.get(parent(link.path)):
                directory.links.append(link)
                directory.depth = min(directory.depth, _depth_above(link))
                directory.add(number, None)


def _depth_above(link: File) -> int:
    """Return the depth of the deepest directory above both a hardlink and its target."""
    if link.link is None:
        return 0
    names = zip(parent(link.path).split(b"/"), parent(link.link).split(b"/"), strict=False)
    return len([*takewhile(lambda pair: pair[0] and pair[0] == pair[1], names)])


def _outermost(plan: Plan, new: Mapping[bytes, _New]) -> list[list[NewSubtree]]:
    """Return, by stage, the outermost directories in `new` that can be published at once."""
    by_stage: list[list[NewSubtree]] = [[] for _ in plan.stages]
    inside: dict[RelPath, NewSubtree] = {}
    for path in plan.make:
        new_directory = new[path]
        subtree = inside.get(parent(path))
        if subtree is None:
            closed = new_directory.depth > path.count(b"/")
            if (
                new_directory.separate
                or not closed
                or new_directory.place is None
                or new_directory.stage is None
            ):
                continue
            folder, top = new_directory.place
            subtree = NewSubtree(
                WholeDirectory(folder, join(top, path), path, ([], []), [], [], []), [], []
            )
            by_stage[new_directory.stage].append(subtree)
        inside[path] = subtree
        subtree.make.append(path)
        subtree.files.extend(new_directory.files)
        subtree.directory.other_files.extend(new_directory.other_files)
        subtree.directory.links.extend(new_directory.links)
        subtree.directory.symlinks.extend(new_directory.symlinks)
    positions: defaultdict[RelPath, list[int]] = defaultdict(list)
    for position, final in enumerate(plan.directories):  # deepest first
        if final.path in inside:
            directory = inside[final.path].directory
            settled = final.path != directory.path and _is_settled(final)
            positions[directory.path].append(position)
            directory.directories[1].append((new[final.path].names, settled))

    def with_attributes(subtree: NewSubtree) -> NewSubtree:
        """Return the subtree with the final attributes of its directories."""
        directory = subtree.directory
        finals = chosen(plan.directories, positions[directory.path])
        return subtree._replace(
            directory=directory._replace(directories=(finals, directory.directories[1]))
        )

    return [[*map(with_attributes, subtrees)] for subtrees in by_stage]


def _is_settled(final: Directory) -> bool:
    """Return True if a directory's final attributes can be set before it is published."""
    opens = final.mode & _OWNER_MAY_ALL == _OWNER_MAY_ALL
    return opens and not isinstance(final.mode, DefaultMode)
