"""A plan with the facts about it, its totals, and its restriction to a first stage.  Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from huai_client.config.modes import Modes, Reduced
from huai_client.config.settings_record import TreeSettings
from huai_client.diff.candidate import TreeDiff
from huai_client.diff.files import paths, sizes
from huai_client.diff.selection import Extent, Selection
from huai_client.filters.rules import Rules
from huai_client.metadata.commit import Commit
from huai_client.plan.operations import Plan
from huai_client.plan.order import PackageRepository
from huai_client.plan.withhold import ONE_REPOSITORY, Territory
from huai_client.state.delayed_deletion import DelayedDeletion
from huai_native import _native
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import RelPath


class PlanSummary(NamedTuple):
    """The number of entries of each operation, and bytes."""

    fetches: int
    fetch_bytes: int
    links: int
    symlinks: int
    attributes: int
    """Present files, symlinks and directories that only get attributes."""
    moves: int
    new_directories: int
    deletions: int
    delayed: int = 0
    """Deletions that this plan delays."""
    reused: int = 0
    """Files with the content of a local file; not among `fetches`."""
    reused_bytes: int = 0

    @property
    def nothing(self) -> bool:
        """True if the plan does nothing, and delays nothing."""
        return not any(self)


def summarize(plan: Plan) -> PlanSummary:
    """Return the number of operations of each kind, and bytes; reused files are counted apart."""
    files, reuses = plan.fetches, plan.reuses
    total = sum(sizes(files))
    reused = list[int]()
    if reuses:
        named_sizes = zip(paths(files), sizes(files), strict=True)
        reused = [size for path, size in named_sizes if path in reuses]
    new_directories = set(plan.make)
    settled = [path for path in paths(plan.directories) if path not in new_directories]
    return PlanSummary(
        fetches=len(files) - len(reused),
        fetch_bytes=total - sum(reused),
        links=sum(len(stage.links) for stage in plan.stages),
        symlinks=sum(len(stage.symlinks) for stage in plan.stages),
        attributes=sum(len(stage.attributes) for stage in plan.stages) + len(settled),
        moves=len(plan.moves),
        new_directories=len(new_directories),
        deletions=len(plan.clear) + len(plan.removals),
        reused=len(reused),
        reused_bytes=sum(reused),
    )


def reduced_modes(plan: Plan) -> list[File | Directory]:
    """Return entries that are created or changed, with a safer mode than the metadata's."""
    entries = _reduced(plan.directories)
    for stage in plan.stages:
        entries += [*_reduced(stage.fetches), *_reduced(stage.attributes)]
    return entries


def _reduced(entries: Sequence[Entry]) -> list[File | Directory]:
    """Return the entries whose mode the rules reduce."""
    some = entries.reduced() if isinstance(entries, _native.Rows) else entries
    real = (entry for entry in some if not isinstance(entry, Symlink))
    return [entry for entry in real if isinstance(entry.mode, Reduced)]


class PreparedPlan(NamedTuple):
    """A plan that was not executed yet."""

    commit: Commit
    plan: Plan
    summary: PlanSummary
    diff: TreeDiff
    waiting: tuple[DelayedDeletion, ...] = ()
    """Delayed deletions that are left after the plan, in the order of their paths."""
    repositories: tuple[PackageRepository, ...] = ()
    """The package repositories whose indices or pointers may change, for people only."""
    extent: Extent = Extent(0, 0)
    """Entries and bytes that the filter selects."""
    filter: str = ""
    """The record of the settings that the plan follows (`tree_settings`)."""
    territory: Territory = ONE_REPOSITORY
    """Groups paths that belong together, so that a failure holds back nothing else."""
    volatile: frozenset[RelPath] = frozenset()
    """Files to fetch that the upstream may change before they arrive, without a commit."""
    former: Selection | None = None
    """The selection that the last sync left in the tree; None if it is not known for sure."""
    by_stat: int = 0
    """The number of present entries whose content is not known from an earlier commit."""
    refused: HuaiError | None = None
    """The error with which a sync refuses this plan, if it is only shown."""
    unlisted: str = ""
    """Says what a listed upstream could not read, unless the last list had it too."""
    unsafe: RelPath | None = None
    """A symlink that `safe_links` leaves out, if there is one in the comparison."""
    unlimited: tuple[RelPath, ...] = ()
    """Directories of `max_delete_in` that do not exist."""
    whole_tree: bool = False
    """True if the whole tree was compared."""
    is_part: bool = False
    """True if paths outside the part to sync (`restricted`) stay unchanged."""

    @property
    def modes(self) -> Modes:
        """The policy for modes that the plan follows."""
        return TreeSettings.parse(self.filter).modes


class NotInPartError(HuaiError):
    """A plan that can only be executed as a whole."""

    exit_code = ExitCode.USAGE


def restricted(plan: Plan, rules: Rules) -> Plan:
    """Return the part of `plan` that adds and changes paths which `rules` include.

    Raises `NotInPartError` if the plan moves directories or clears paths for entries of another
    type, or if a hardlink is included and its leader is not.  Excluded paths stay unchanged until a
    whole run, so the commit is an attempted one afterwards.
    """
    stages = [stage.restricted(rules.includes) for stage in plan.stages]
    is_split = any(rules.detach(link) != link for stage in stages for link in stage.links)
    if plan.clear or plan.moves or is_split:
        raise NotInPartError(
            "the changes cannot be published without deleting or moving anything",
            hint="run a whole sync, without a first stage",
        )
    brought = {file.path for stage in stages for file in stage.fetches}
    return replace(
        plan,
        make=[path for path in plan.make if rules.reaches(path, directory=True)],
        stages=stages,
        removals=[],
        directories=[each for each in plan.directories if rules.includes(each)],
        reuses={
            path: reuse._replace(most_links=0)  # none takes over an inode: its old name stays
            for path, reuse in plan.reuses.items()
            if path in brought and (not reuse.twin or reuse.source in brought)
        },
    )
