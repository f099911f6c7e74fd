"""A plan with all that was learned while it was made, and what it amounts to.

Pure.
"""

from typing import NamedTuple

from huai_client.diff.candidate import TreeDiff
from huai_client.diff.selection import Extent
from huai_client.metadata.commit import Commit
from huai_client.modes import Modes, Reduced, split_key
from huai_client.plan.operations import Plan
from huai_client.plan.order.order import PackageRepository
from huai_client.plan.withhold import ONE_REPOSITORY, Territory
from huai_client.state.delayed_deletion import DelayedDeletion
from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import RelPath


class PlanSummary(NamedTuple):
    """Counts of entries, and bytes."""

    fetches: int
    fetch_bytes: int
    links: int
    symlinks: int
    attributes: int
    """Entries whose content is here already, directories included."""
    moves: int
    new_directories: int
    deletions: int
    delayed: int = 0
    """Deletions that will wait."""
    reused: int = 0
    """Files whose content is here already, under another name; not among `fetches`."""
    reused_bytes: int = 0

    @property
    def nothing(self) -> bool:
        """Whether the tree is as it should be."""
        return not any(self)


def summarize(plan: Plan) -> PlanSummary:
    """Add up a plan."""
    files = [file for stage in plan.stages for file in stage.fetches]
    fetches = [file for file in files if file.path not in plan.reuses]
    made = set(plan.make)
    return PlanSummary(
        fetches=len(fetches),
        fetch_bytes=sum(file.size for file in fetches),
        links=sum(len(stage.links) for stage in plan.stages),
        symlinks=sum(len(stage.symlinks) for stage in plan.stages),
        attributes=sum(len(stage.attributes) for stage in plan.stages)
        + sum(directory.path not in made for directory in plan.directories),
        moves=len(plan.moves),
        new_directories=len(made),
        deletions=len(plan.clear) + len(plan.removals),
        reused=len(files) - len(fetches),
        reused_bytes=sum(file.size for file in files if file.path in plan.reuses),
    )


def reduced_modes(plan: Plan) -> list[File | Directory]:
    """What the plan creates or changes and gives a safer mode than the metadata states."""
    files = (file for stage in plan.stages for file in (*stage.fetches, *stage.attributes))
    real = (entry for entry in (*plan.directories, *files) if not isinstance(entry, Symlink))
    return [entry for entry in real if isinstance(entry.mode, Reduced)]


class Prepared(NamedTuple):
    """A plan that was not carried out yet."""

    commit: Commit
    plan: Plan
    summary: PlanSummary
    diff: TreeDiff
    waiting: tuple[DelayedDeletion, ...] = ()
    """Deletions that wait when the plan is carried out, by path."""
    repositories: tuple[PackageRepository, ...] = ()
    """Those in which anything changes, as far as they are recognised."""
    extent: Extent = Extent(0, 0)
    """How much the filter lets through."""
    filter: str = ""
    """Filter and modes that are planned for (`filters.Rules.key`); empty: neither."""
    territory: Territory = ONE_REPOSITORY
    """What belongs together in the tree, so that a failure holds up nothing else."""
    volatile: frozenset[RelPath] = frozenset()
    """Of the files to fetch, those that may be other ones by then."""
    refused: str = ""
    """Why a sync would refuse this plan for a filter that is only tried."""

    @property
    def modes(self) -> Modes:
        """The policy for modes that is planned for."""
        return split_key(self.filter)[0]
