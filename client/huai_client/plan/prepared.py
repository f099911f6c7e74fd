"""A plan with all that was learned while it was made."""

from typing import NamedTuple

from huai_client.diff.candidate import TreeDiff
from huai_client.diff.selection import Extent
from huai_client.metadata.commit import Commit
from huai_client.modes import Modes, split_key
from huai_client.plan.operations import Plan
from huai_client.plan.order.order import PackageRepository
from huai_client.plan.summary import PlanSummary
from huai_client.plan.withhold import ONE_REPOSITORY, Territory
from huai_client.state.delayed_deletion import DelayedDeletion
from huai_schema.paths import RelPath


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
