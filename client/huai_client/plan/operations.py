"""The operations of a plan: plain values.

Pure.  The planner makes them, `--dry-run` prints them, the executor carries them out: one field of
`Plan` after the other, each list in order.

Stages are published in the order of their numbers: payload, indices, pointers.  So an index never
names a file that is still missing, and a pointer never names such an index.  `plan.order` decides
the stage of a path.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from huai_client.diff.candidate import Move, Remove, Reuse
from huai_client.diff.files import joined
from huai_schema.codec.publish_rules import STAGES
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath

PAYLOAD, _, POINTERS = range(len(STAGES))


class StepKind(StrEnum):
    """The kinds of steps, in the order in which a run meets them."""

    CLEAR = "clear"
    MAKE = "make"
    MOVE = "move"
    PUBLISH = "publish"
    LINK = "link"
    SYMLINK = "symlink"
    ATTRIBUTES = "attributes"
    REMOVE = "remove"
    DIRECTORY = "directory"


@dataclass(frozen=True, slots=True)
class Stage:
    """A group of files that are published together: payload, then indices, then pointers."""

    name: str
    fetches: Sequence[File] = field(default_factory=list)
    """Content to transfer, then to rename into place."""
    links: list[File] = field(default_factory=list)
    """Hardlinks to make to `File.link`, which is published before them."""
    symlinks: list[Symlink] = field(default_factory=list)
    attributes: Sequence[File | Symlink] = ()
    """Present files and symlinks: only mode, owner and times are set."""

    def restricted(
        self, may: Callable[[Entry], bool], settles: Callable[[Entry], bool] | None = None
    ) -> "Stage":
        """Return the part that `may` allows; `settles` decides about `attributes`, if given."""
        return replace(
            self,
            fetches=[each for each in self.fetches if may(each)],
            links=[each for each in self.links if may(each)],
            symlinks=[each for each in self.symlinks if may(each)],
            attributes=[each for each in self.attributes if (settles or may)(each)],
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """The ordered operations that bring a tree to a snapshot."""

    clear: Sequence[Remove]
    """Deletions that make way for an entry of another type, deepest first."""
    make: Sequence[RelPath]
    """Directories to create, parents first; their owner can write to them until the end."""
    moves: list[Move]
    """Renames of directories, after clearing and making outside of them, before it inside.  All
    other operations name paths in a moved directory by its new path."""
    stages: list[Stage]
    removals: Sequence[Remove]
    """All other deletions, deepest first."""
    directories: Sequence[Directory]
    """Final attributes of the directories that the plan makes or changes, deepest first."""
    forwards: dict[RelPath, Symlink] = field(default_factory=dict)
    """By `Move.old`: a symlink to the new path, for readers of old indices."""
    reuses: dict[RelPath, Reuse] = field(default_factory=dict)
    """By path: local sources of files in `fetches`, which need no transfer."""

    def steps(self) -> Iterator[tuple[StepKind, Entry]]:
        """Yield all steps in order; a removed, made or moved directory has no attributes."""
        yield from ((StepKind.CLEAR, _removed(item)) for item in self.clear)
        yield from ((StepKind.MAKE, Directory(path, 0)) for path in self.make)
        yield from ((StepKind.MOVE, Directory(move.new, 0)) for move in self.moves)
        for stage in self.stages:
            yield from ((StepKind.PUBLISH, file) for file in stage.fetches)
            yield from ((StepKind.LINK, file) for file in stage.links)
            yield from ((StepKind.SYMLINK, symlink) for symlink in stage.symlinks)
            yield from ((StepKind.ATTRIBUTES, entry) for entry in stage.attributes)
        yield from ((StepKind.REMOVE, _removed(item)) for item in self.removals)
        yield from ((StepKind.DIRECTORY, directory) for directory in self.directories)

    @property
    def fetches(self) -> Sequence[File]:
        """The files to fetch of all stages."""
        return joined(*(stage.fetches for stage in self.stages))


def _removed(item: Remove) -> Entry:
    return Directory(item.path, 0) if item.directory else File(item.path, 0, 0)
