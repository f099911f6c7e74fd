"""What carrying out a plan came to: how many steps of each kind, and what failed.  Pure."""

from typing import NamedTuple

from huai_client.plan.operations import PAYLOAD
from huai_schema.codec.publish_rules import STAGES
from huai_schema.paths import RelPath


class FailedPath(NamedTuple):
    """A path at which a step failed."""

    path: RelPath
    reason: str


class StepCounts(NamedTuple):
    """How many steps of each kind were done, in the order of `StepKind`."""

    cleared: int
    made: int
    moved: int
    published: int
    linked: int
    symlinked: int
    attributes: int
    removed: int
    directories: int


class Published(NamedTuple):
    """How long it took to put a stage in place."""

    stage: str
    changes: int
    seconds: float


class Report(NamedTuple):
    """What was done, and what failed."""

    counts: StepCounts
    problems: tuple[FailedPath, ...]
    extraneous: tuple[RelPath, ...]
    """Directories that were not deleted, because they hold extraneous files."""
    unknown_users: frozenset[bytes]
    """Names that this machine does not know; the entries kept their owner."""
    unknown_groups: frozenset[bytes]
    published: tuple[Published, ...] = ()
    """The stages in which anything was done, in their order."""
    held: int = 0
    """How many steps were withheld because another one failed."""
    unmoved: bool = False
    """Whether a directory cannot be renamed on this file system, so that its files have to be."""

    @property
    def mixed_seconds(self) -> float:
        """How long the tree was between two snapshots: from the first index to the last pointer."""
        return sum(each.seconds for each in self.published if each.stage != STAGES[PAYLOAD])
