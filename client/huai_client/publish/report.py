"""The result of executing a plan: the number of steps of each kind, and the failures.  Pure."""

from typing import NamedTuple

from huai_client.plan.operations import PAYLOAD
from huai_schema.codec.publish_rules import STAGES
from huai_schema.paths import RelPath


class FailedPath(NamedTuple):
    """A path at which a step failed."""

    path: RelPath
    reason: str


class StepCounts(NamedTuple):
    """The number of steps of each kind, in the order of `StepKind`."""

    cleared: int
    made: int  # prose: a count by kind of step, as those around it
    moved: int
    published: int
    linked: int
    symlinked: int
    attributes: int
    removed: int
    directories: int


class Published(NamedTuple):
    """The time that it took to publish a stage."""

    stage: str
    changes: int
    seconds: float


class Report(NamedTuple):
    """The steps that were done, and the failures."""

    counts: StepCounts
    problems: tuple[FailedPath, ...]
    extraneous: tuple[RelPath, ...]
    """Directories that were not deleted, because they hold extraneous files."""
    unknown_owners: frozenset[bytes]
    """Users and groups that are not known on this machine; the entries kept their owner."""
    published: tuple[Published, ...] = ()
    """The stages with changes, in their order."""
    withheld: int = 0
    """The number of steps that wait because another one failed."""
    unmoved: bool = False
    """True if this file system cannot rename directories, so that files have to be moved."""

    @property
    def mixed_seconds(self) -> float:
        """The time that the tree was between two snapshots: first index to last pointer."""
        return sum(each.seconds for each in self.published if each.stage != STAGES[PAYLOAD])
