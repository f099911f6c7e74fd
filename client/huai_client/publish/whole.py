"""Finds the new directories that one rename can publish, with everything below them.

Pure.  Such a directory lies in the staging area as rsync made it, at its own path below the folder
of one run.  What the plan wants below it are files of one stage and directories, and nothing else
depends on its being there before them.  The outermost are taken.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from huai_client.plan.operations import Plan
from huai_client.tree import Staged, WholeDirectory
from huai_schema.entries import Directory, File
from huai_schema.paths import RelPath, join, parent


class Whole(NamedTuple):
    """A new directory that is published at once."""

    directory: WholeDirectory
    make: list[RelPath]
    """It and those below it, parents first."""
    files: list[File]
    """All files below it."""


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
    files: list[File] = field(default_factory=list)
    others: list[tuple[int, bytes, RelPath]] = field(default_factory=list)

    def take(self, stage: int | None, place: _Place | None) -> None:
        """Something of `stage`, at `place`, is in it."""
        if self.stage is None:
            self.stage = stage
        if self.place is None:
            self.place = place
        if stage not in {None, self.stage} or place not in {None, self.place}:
            self.apart = True


def whole_directories(
    plan: Plan, staged: Callable[[File], Staged], volatile: Collection[RelPath] = ()
) -> list[list[Whole]]:
    """Those of each stage of `plan`; `staged` gives the content of a file.

    `volatile` files come last in their stage, so none of them comes with a directory.
    """
    final = {directory.path: directory for directory in plan.directories}
    new = {path: _New(final.get(path)) for path in plan.make}
    _look_at_files(plan, staged, new)
    others = [move.new for move in plan.moves]
    for stage in plan.stages:
        others += [link.path for link in stage.links]
        others += [symlink.path for symlink in stage.symlinks]
    for path in (*others, *volatile):
        if above := new.get(parent(path)):
            above.apart = True
    for path in reversed(plan.make):
        here = new[path]
        here.apart |= here.final is None
        if above := new.get(parent(path)):
            above.names += 1
            above.apart |= here.apart
            above.take(here.stage, here.place)
    return _outermost(plan, new)


def _look_at_files(
    plan: Plan, staged: Callable[[File], Staged], new: Mapping[RelPath, _New]
) -> None:
    for number, stage in enumerate(plan.stages):
        for file in stage.fetches:
            path = file.path
            here = new.get(parent(path))
            if here is None:
                continue
            here.files.append(file)
            folder, name = staged(file)
            top = name.removesuffix(b"/" + path)
            place = (folder, top)
            if top != name and here.place in {None, place}:
                here.names += 1
                here.take(number, place)
            else:
                here.take(number, None)
                here.others.append((folder, name, path))


def _outermost(plan: Plan, new: Mapping[RelPath, _New]) -> list[list[Whole]]:
    found: list[list[Whole]] = [[] for _ in plan.stages]
    inside: dict[RelPath, Whole] = {}
    for path in plan.make:
        here = new[path]
        whole = inside.get(parent(path))
        if whole is None:
            if here.apart or here.place is None or here.stage is None:
                continue
            folder, top = here.place
            whole = Whole(WholeDirectory(folder, join(top, path), path, [], []), [], [])
            found[here.stage].append(whole)
        inside[path] = whole
        whole.make.append(path)
        whole.files.extend(here.files)
        whole.directory.others.extend(here.others)
    for path in reversed(plan.make):  # deepest first
        final = new[path].final
        if path in inside and final is not None:
            inside[path].directory.directories.append((final, new[path].names))
    return found
