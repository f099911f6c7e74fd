"""What a plan consists of: plain values.

Pure.  The planner makes them, `--dry-run` prints them, the executor carries them out
in the order of the fields of `Plan`; within a list, in the order of the list.

The stages of publication go by number: payload, then indices, then pointers.  An index must never
name what is not there yet, a pointer never an index that is not.  Which path belongs to which
stage is for `plan.order` to say.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from huai_client.diff.candidate import Move
from huai_client.diff.reuse.value import Reuse
from huai_schema.codec.publish_rules import STAGES
from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import RelPath

PAYLOAD, _, POINTERS = range(len(STAGES))


class Remove(NamedTuple):
    """Unlink a file, symlink or special file, or remove an empty directory."""

    path: RelPath
    directory: bool


@dataclass(frozen=True, slots=True)
class Stage:
    """What is published together: payload, then indices, then pointers."""

    name: str
    fetches: list[File] = field(default_factory=list)
    """Content to transfer, then to rename into place."""
    links: list[File] = field(default_factory=list)
    """Hardlinks to make to `File.link`, which exists by then."""
    symlinks: list[Symlink] = field(default_factory=list)
    attributes: list[File | Symlink] = field(default_factory=list)
    """The content is here already: set mode, owner and times only."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The ordered operations that bring a tree to a snapshot."""

    clear: list[Remove]
    """What stands in the way of an entry of another type, deepest first."""
    make: list[RelPath]
    """Directories to create, parents first, writable until the end."""
    moves: list[Move]
    stages: list[Stage]
    removals: list[Remove]
    """Deletions, deepest first; only after everything before has succeeded."""
    directories: list[Directory]
    """Final attributes of every directory that was made or touched, deepest first."""
    forwards: dict[RelPath, Symlink] = field(default_factory=dict)
    """By `Move.old`: a symlink to where the directory went, for those who still look there."""
    reuses: dict[RelPath, Reuse] = field(default_factory=dict)
    """By path: those of the `fetches` that need no transfer."""

    def with_reuses(self, reuses: dict[RelPath, Reuse]) -> "Plan":
        """The same, with `reuses`."""
        return replace(self, reuses=reuses)
