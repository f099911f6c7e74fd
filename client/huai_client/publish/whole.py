"""Finds the new directories that one rename can publish, with everything below them.

Pure.  Such a directory lies in the staging area as rsync made it, at its own path below the folder
of one run.  What the plan wants below it are directories, and files, hardlinks and symlinks of one
stage, and nothing else depends on its being there before them.  Links are made where the directory
lies, so that of a hardlink has to lie below it too.  The outermost are taken.
"""

from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import NamedTuple

from huai_client.config.modes import DefaultMode
from huai_client.diff.files import paths
from huai_client.plan.operations import Plan
from huai_client.tree import Places, WholeDirectory
from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import RelPath, join, parent


class Whole(NamedTuple):
    """A new directory that is published at once."""

    directory: WholeDirectory
    make: list[RelPath]
    """It and those below it, parents first."""
    files: "array[int]"
    """The places of all files below it, but for hardlinks, among those of their stage."""


_OWNER_MAY_ALL = 0o700
_ANY_DEPTH = 1 << 16
_Place = tuple[int, bytes]
"""A handle, and the path below it under which a file lies at its own path."""


@dataclass(slots=True)
class _New:
    """A directory that the plan makes."""

    final: Directory | None
    """Its attributes."""
    apart: bool = False
    """Whether it has to be made by itself."""
    stage: int | None = None
    """None: there is no file below it."""
    place: _Place | None = None
    """None: no file below it lies under its own path."""
    names: int = 0
    """How many it holds where it lies, once its empty subdirectories are made."""
    depth: int = _ANY_DEPTH
    """Of the deepest directory that has all its hardlinks and the files these are of below it."""
    files: "array[int]" = field(default_factory=partial(array, "L"))
    others: list[tuple[int, bytes, RelPath]] = field(default_factory=list)
    links: list[File] = field(default_factory=list)
    symlinks: list[Symlink] = field(default_factory=list)

    def take(self, stage: int | None, place: _Place | None) -> None:
        """Something of `stage`, at `place`, is in it."""
        if self.stage is None:
            self.stage = stage
        if self.place is None:
            self.place = place
        if stage not in {None, self.stage} or place not in {None, self.place}:
            self.apart = True


def whole_directories(
    plan: Plan, staged: Callable[[Sequence[File]], Places], volatile: Collection[RelPath] = ()
) -> list[list[Whole]]:
    """Those of each stage of `plan`; `staged` gives the places of files.

    `volatile` files come last in their stage, so none of them comes with a directory.
    """
    final = {directory.path: directory for directory in plan.directories}
    new: dict[bytes, _New] = {path: _New(final.get(path)) for path in plan.make}
    _look_at_files(plan, staged, new)
    _look_at_links(plan, new)
    for path in (*(move.new for move in plan.moves), *volatile):
        if above := new.get(parent(path)):
            above.apart = True
    for path in reversed([*plan.make]):
        here = new[path]
        here.apart |= here.final is None
        if above := new.get(parent(path)):
            above.names += 1
            above.apart |= here.apart
            above.depth = min(above.depth, here.depth)
            above.take(here.stage, here.place)
    return _outermost(plan, new)


def _look_at_files(
    plan: Plan, staged: Callable[[Sequence[File]], Places], new: Mapping[bytes, _New]
) -> None:
    for number, stage in enumerate(plan.stages):
        places = staged(stage.fetches)
        runs = places.arrived.runs(stage.fetches)
        for place, (path, run) in enumerate(zip(paths(stage.fetches), runs, strict=True)):
            here = new.get(path.rpartition(b"/")[0])
            if here is None:
                continue
            here.files.append(place)
            lies = None if run is None else (places.runs, b"%d" % run)
            if lies is not None and here.place in {None, lies}:
                here.names += 1
                if (here.stage, here.place) != (number, lies):
                    here.take(number, lies)
            else:
                here.take(number, None)
                name = places.names[place] if lies is None else join(lies[1], path)
                here.others.append((lies[0] if lies else places.finished, name, path))


def _look_at_links(plan: Plan, new: Mapping[bytes, _New]) -> None:
    for number, stage in enumerate(plan.stages):
        for symlink in stage.symlinks:
            if here := new.get(parent(symlink.path)):
                here.symlinks.append(symlink)
                here.take(number, None)
        for link in stage.links:
            if here := new.get(parent(link.path)):
                here.links.append(link)
                here.depth = min(here.depth, _depth_above(link))
                here.take(number, None)


def _depth_above(link: File) -> int:
    """Of the deepest directory above both a hardlink and the file that it is of."""
    if link.link is None:
        return 0
    names = zip(parent(link.path).split(b"/"), parent(link.link).split(b"/"), strict=False)
    return len([*takewhile(lambda pair: pair[0] and pair[0] == pair[1], names)])


def _outermost(plan: Plan, new: Mapping[bytes, _New]) -> list[list[Whole]]:
    found: list[list[Whole]] = [[] for _ in plan.stages]
    inside: dict[RelPath, Whole] = {}
    for path in plan.make:
        here = new[path]
        whole = inside.get(parent(path))
        if whole is None:
            closed = here.depth > path.count(b"/")
            if here.apart or not closed or here.place is None or here.stage is None:
                continue
            folder, top = here.place
            whole = Whole(
                WholeDirectory(folder, join(top, path), path, ([], []), [], [], []), [], array("L")
            )
            found[here.stage].append(whole)
        inside[path] = whole
        whole.make.append(path)
        whole.files.extend(here.files)
        whole.directory.other_files.extend(here.others)
        whole.directory.links.extend(here.links)
        whole.directory.symlinks.extend(here.symlinks)
    for path in reversed([*plan.make]):  # deepest first
        final = new[path].final
        if path in inside and final is not None:
            directory = inside[path].directory
            settled = path != directory.path and _is_settled(final)
            directories, held = directory.directories
            directories.append(final)
            held.append((new[path].names, settled))
    return found


def _is_settled(final: Directory) -> bool:
    """Whether it can have its final attributes when it is published."""
    opens = final.mode & _OWNER_MAY_ALL == _OWNER_MAY_ALL
    return opens and not isinstance(final.mode, DefaultMode)
