"""Makes a plan, step by step: the one place that knows the order of the steps.

Each step takes values and returns one.  The configuration, the clock and recorded state are read
here and passed on.  Changes nothing.
"""

import time
from dataclasses import replace
from functools import cached_property, partial
from typing import NamedTuple

from huai_client.config.load import Module
from huai_client.config.mirror import Mirror
from huai_client.config.tree_settings import changed_keys, record_settings
from huai_client.diff.active_filter import rules_of
from huai_client.diff.candidate import Difference, TreeDiff
from huai_client.diff.candidates import (
    diff_changes,
    diff_damage,
    diff_whole,
    digest_here,
    split_from_own,
)
from huai_client.diff.files import paths
from huai_client.diff.moves import nowhere
from huai_client.diff.remains import check_destination, check_not_empty
from huai_client.diff.renames import RenamedView
from huai_client.diff.reuse import PlannedFetches, ReuseSources
from huai_client.diff.selection import Extent, Selection, diff_selections
from huai_client.diff.symlinks import without_unsafe
from huai_client.diff.table import CandidateTable
from huai_client.filters import Rules
from huai_client.metadata.commit import Commit
from huai_client.metadata.repository import Repository
from huai_client.metadata.source.record import list_problem
from huai_client.plan.deletions import DeletionLimits, TooManyDeletionsError, parse_exceptions
from huai_client.plan.operations import Plan
from huai_client.plan.order import PublishOrder
from huai_client.plan.pending import (
    DelayPolicy,
    delay_deletions,
    due_by_run,
    find_emptied_directories,
    follow_moves,
    partition_present,
    with_reappeared,
)
from huai_client.plan.planner import (
    accept_shared_inodes,
    changed_directories,
    make_plan,
    split_shared_inodes,
    volatile_fetches,
    with_directories,
)
from huai_client.plan.prepared import PreparedPlan, restricted, summarize
from huai_client.plan.profiles import list_volatile_rules, profiles
from huai_client.plan.protect import Protection, Undeletable, drop_protected, may_move
from huai_client.run.options import SyncOptions
from huai_client.state import delayed_record
from huai_client.state.delayed_deletion import DelayedDeletion
from huai_client.state.state import State
from huai_client.tree import View
from huai_client.tree.case import check_removals
from huai_program.configuration import ConfigError, closest
from huai_program.durations import seconds
from huai_schema.codec.publish_rules import ProfileRule, Rule, own_rules, usable_rules
from huai_schema.entries import Directory
from huai_schema.paths import RelPath

NO_CHANGES = TreeDiff([], [], [])


class _Goal(NamedTuple):
    commit: Commit
    selection: Selection
    extent: Extent
    former: Selection
    """The selection that the tree had before; limits of directories are shares of it."""
    entries_before: int | None
    """The number of entries before; None if it is not known before the comparison."""


class PlanBuilder:
    """A builder of the plans of one run: of a sync, a repair, or the deletions that are due."""

    def __init__(self, mirror: Mirror, options: SyncOptions, repository: Repository) -> None:
        """`repository` holds the commits to plan for.

        Raises `FilterError` for a malformed pattern of `protect`, `DeleteLimitError` for a
        malformed limit of `options`.
        """
        module = mirror.config
        self._mirror = mirror
        self._module = module
        self._options = options
        self._repository = repository
        self._protection = Protection(module.protected)
        self._undeletable = Undeletable(options.undeletable)
        self._limits = DeletionLimits(
            options.max_delete or str(module.max_delete),
            {**module.max_delete_in, **parse_exceptions(options.max_delete_in)},
        )
        self.refuses = True
        """False if a plan that a limit on deletions refuses is only shown."""
        self.moves = True
        """True if directories may be renamed: some file systems cannot do that."""

    # The goals of a plan

    def update(
        self, view: View, commit: Commit, state: State, rules: Rules | None = None
    ) -> PreparedPlan:
        """Return a plan that brings the tree from the commits in `state` to `commit`.

        `rules` replace the configured filter and modes.
        Raises `DestinationError` if DEST seems unmounted, `TooManyDeletionsError` if a limit on
        deletions is exceeded, `UnreadableTreeError` if the tree cannot be read, `NotInPartError` if
        `only` selects a part that cannot be published alone, `FilterError` for a malformed filter.
        """
        applied, attempted = self.past_selections(state)
        past = [each for each in (applied, *attempted) if each is not None]
        selection = Selection(commit.snapshot, self.rules if rules is None else rules)
        if not self._options.adopt:
            if applied is not None:
                check_destination(view, past)
            elif state.entries > 1:
                check_not_empty(view)
        whole_tree = self._compares_whole_tree(applied, state)
        diff = self._compare(view, past, selection, whole_tree=whole_tree)
        before = None if applied is None else self._recorded_extent(state)
        extent = _extent(commit, selection, applied, before)
        entries = None if before is None else before.entries
        goal = _Goal(commit, selection, extent, applied or selection, entries)
        prepared = self._build(diff, goal, view, delays=True, sure=True)._replace(
            whole_tree=whole_tree
        )
        if state.applied is not None and self._repository.has(state.applied):
            return prepared
        missing, _ = CandidateTable.of(diff.candidates).engine.unequal()
        return prepared._replace(by_stat=extent.entries - missing - 1)

    def repair(
        self, view: View, commit: Commit, state: State, damage: list[Difference]
    ) -> PreparedPlan:
        """Return a plan that brings the paths in `damage` back to `commit`, the applied one.

        No deletion is delayed, and no local file is a source unless its digest proves it.  Raises
        `TooManyDeletionsError` or `UnreadableTreeError` as `update`.
        """
        goal = self._applied_goal(commit, state)
        extraneous = self._deletes_extraneous
        diff = diff_damage(view, damage, goal.selection, delete_extraneous=extraneous)
        return self._build(diff, goal, view, delays=False, sure=False)

    def due(self, view: View, commit: Commit, state: State) -> PreparedPlan:
        """Return a plan of the delayed deletions that are due; raises as `update`.

        `commit` is the applied one.
        """
        goal = self._applied_goal(commit, state)
        check_destination(view, [goal.selection])
        return self._build(NO_CHANGES, goal, view, delays=True, sure=True)

    # The steps

    def _build(
        self, diff: TreeDiff, goal: _Goal, view: View, *, delays: bool, sure: bool
    ) -> PreparedPlan:
        """Make a plan from `diff`.

        With `delays`, deletions are delayed as configured, and delayed ones that are due are made.
        With `sure`, the content of unchanged local files is taken to be as in the metadata.
        """
        module, commit = self._module, goal.commit
        order = publish_order(module, commit)
        pending = follow_moves(self._pending(), diff.moves)
        ahead = RenamedView(view, diff.moves)

        diff = drop_protected(diff, self._protection, ahead)
        diff = self._undeletable.drop_kept(diff, ahead)
        if delays:
            diff = with_reappeared(diff, pending, partial(digest_here, ahead))
        unsafe = None
        if module.safe_links:
            diff, unsafe = without_unsafe(diff)
        plan = make_plan(diff.candidates, diff.moves, order.stages_of)
        refused = self._check_limits(plan, diff, goal)
        changed = changed_directories(plan)
        delayed = 0
        if delays:
            policy = self._delay_policy(order, goal.selection.rules)
            before = pending
            present, vanished = partition_present(pending, ahead)
            plan, pending, delayed = delay_deletions(plan, present, policy)
            changed = changed_directories(plan) | find_emptied_directories(vanished, ahead)
            self._limits.check_due(due_by_run(plan, before), goal.extent.entries, goal.former)
        check_removals(ahead, (each.path for each in (*plan.clear, *plan.removals)))
        plan = with_directories(plan, _directories_of(changed, plan, goal.selection))
        plan = self._with_reuses(plan, diff, view, commit, sure=sure)
        prepared = PreparedPlan(
            commit,
            plan,
            summarize(plan)._replace(delayed=delayed),
            diff,
            tuple(pending),
            tuple(order.repositories()),
            extent=goal.extent,
            filter=record_settings(module, goal.selection.rules.key()),
            territory=order,
            volatile=volatile_fetches(plan, order.volatile_files),
            former=goal.former if sure else None,
            refused=refused,
            unsafe=unsafe,
            unlimited=tuple(self._limits.missing(goal.former, goal.selection)),
        )
        if self._options.only is None:
            return prepared
        part = restricted(plan, self._options.only)
        return prepared._replace(plan=part, summary=summarize(part), is_part=True)

    def _compare(
        self, view: View, past: list[Selection], selection: Selection, *, whole_tree: bool
    ) -> TreeDiff:
        """Compare the tree with `selection`, wholly (`whole_tree`) or where `past` differs."""
        shares = self._module.duplicates == "hardlink"
        if whole_tree:
            extraneous = self._deletes_extraneous
            tick = partial(self._options.deadline.check, "the tree was compared in part")
            safe = self._module.safe_links
            diff = diff_whole(
                view, past, selection, delete_extraneous=extraneous, safe_links=safe, tick=tick
            )
            diff = accept_shared_inodes(diff) if shares else diff
            if self._protection:
                own_paths = self._protection.files(diff, selection.snapshot)
                return split_from_own(view, diff, selection, own_paths)
            return diff
        moves = may_move(self._protection, self._undeletable, view) if self.moves else nowhere
        diff = diff_changes(view, past, selection, moves)
        if shares or len(past) > 1:
            return split_shared_inodes(diff, may_share=shares)
        return diff

    def _check_limits(
        self, plan: Plan, diff: TreeDiff, goal: _Goal
    ) -> TooManyDeletionsError | None:
        """Raise the error of a limit on deletions that `plan` exceeds, or return it (`refuses`).

        Returns None if the limits hold.
        """
        entries = goal.entries_before
        if entries is None:
            # Nothing was applied: the limit is a share of the present tree, not of the wanted one.
            missing, extra = CandidateTable.of(diff.candidates).engine.unequal()
            entries = goal.extent.entries - missing + extra + len(diff.extraneous)
        try:
            self._limits.check(plan, entries, goal.former)
        except TooManyDeletionsError as error:
            if self.refuses:
                raise
            return error
        return None

    def _delay_policy(self, order: PublishOrder, rules: Rules) -> DelayPolicy:
        """Return which deletions wait, and how long."""

        def is_named(path: RelPath) -> bool:
            """Return True if the wanted snapshot has `path`, and the filter includes it."""
            directory = order.is_directory(path)
            return (directory or order.has_entry(path)) and rules.reaches(path, directory=directory)

        delay = seconds(self._module.delete_after)
        return DelayPolicy(int(time.time()), delay, order.deletes_at_once, is_named)

    def _with_reuses(
        self, plan: Plan, diff: TreeDiff, view: View, commit: Commit, *, sure: bool
    ) -> Plan:
        """Return the plan with local sources for files that need no transfer.

        `sure` as in `_build`.
        """
        fetches = plan.fetches
        entries = len(fetches) + sum(len(stage.links) for stage in plan.stages)
        needed = PlannedFetches(fetches, entries, diff.candidates, plan.moves)
        reuses = ReuseSources(self._mirror).find(needed, view, commit, sure=sure)
        for path, reuse in reuses.items() if self._protection else ():
            if reuse.most_links and self._protection.covers(reuse.source, directory=False):
                reuses[path] = reuse._replace(most_links=0)
        return replace(plan, reuses=reuses)

    # The recorded state

    @property
    def _deletes_extraneous(self) -> bool:
        """True by option; never if the upstream could not list all: it may have them."""
        repository = self._mirror.paths.repository
        return self._options.delete_extraneous and not list_problem(repository)

    @cached_property
    def rules(self) -> Rules:
        """The filter and modes of this run; raises `FilterError` for a malformed filter."""
        return rules_of(self._mirror, self._options)

    def walks(self, state: State) -> bool:
        """Return True if an update has to compare the whole tree."""
        return self._compares_whole_tree(self.past_selections(state)[0], state)

    def _compares_whole_tree(self, applied: Selection | None, state: State) -> bool:
        """Return True without `applied` (see `past_selections`), by option or other settings."""
        if self._options.adopt or self._options.compare or applied is None:
            return True
        return bool(changed_keys(self._module, *state.settings))

    def _pending(self) -> list[DelayedDeletion]:
        """Return the recorded delayed deletions, without paths that must not be deleted."""
        keepers = (self._protection, self._undeletable)
        recorded = delayed_record.load(self._mirror.paths.delayed)
        return [each for each in recorded if not any(rule.may_cover(each.path) for rule in keepers)]

    def _applied_goal(self, commit: Commit, state: State) -> _Goal:
        selection, extent = applied_selection(commit, state), self._recorded_extent(state)
        return _Goal(commit, selection, extent, selection, extent.entries)

    def _recorded_extent(self, state: State) -> Extent:
        """Return entries and bytes of the applied commit that its filter selects."""
        if state.applied and not state.entries:  # by a version without filters
            return Extent.of_totals(self._repository.commit(state.applied).info.totals)
        return Extent(state.entries, state.total_bytes)

    def past_selections(self, state: State) -> tuple[Selection | None, list[Selection]]:
        """Return the selections of the applied and attempted commits that are still here.

        The first is left out (None) if the whole tree has to be compared: nothing was applied yet,
        one of the commits is missing, or a sync to the applied commit itself was interrupted.
        """
        repository = self._repository
        present = [(commit, key) for commit, key in state.attempts if repository.has(commit)]
        attempted = [
            Selection(repository.commit(commit).snapshot, Rules.from_key(key))
            for commit, key in present
        ]
        if state.applied is None or not repository.has(state.applied):
            return None, attempted
        applied = applied_selection(repository.commit(state.applied), state)
        if (state.applied, state.filter) in present:
            return None, attempted
        if len(present) < len(state.attempts):
            return None, [applied, *attempted]
        return applied, attempted


def applied_selection(commit: Commit, state: State) -> Selection:
    """Return the applied `commit` with its recorded filter, or raise `HuaiError`."""
    return Selection(commit.snapshot, Rules.from_key(state.filter))


def publish_order(module: Module, commit: Commit) -> PublishOrder:
    """Return the order by client.toml, the upstream, and the known profiles.

    Repositories are recognised in the whole snapshot: a filter may exclude their markers.
    Raises `ConfigError` for a profile that does not exist.
    """
    upstream = usable_rules(commit.descriptor.publish)
    volatile = list_volatile_rules(module, commit.descriptor)
    return PublishOrder(commit.snapshot, profiles(), _own_rules(module), upstream, volatile)


def order_without_upstream(module: Module, commit: Commit) -> PublishOrder:
    """Return the order without the upstream's rules; raises as `publish_order` does."""
    silent = commit.descriptor._replace(publish=())
    return publish_order(module, commit._replace(descriptor=silent))


def _own_rules(module: Module) -> list[Rule]:
    """Return the publish rules of client.toml; raises `ConfigError` for an unknown profile."""
    own = own_rules(module.publish)
    for rule in own:
        if isinstance(rule, ProfileRule) and rule.profile not in profiles():
            raise ConfigError(
                f"publish rule {rule.text!r}: the profile {rule.profile!r} does not exist",
                hint=closest(rule.profile, profiles()),
            )
    return own


def _extent(
    commit: Commit, selection: Selection, applied: Selection | None, before: Extent | None
) -> Extent:
    """Return entries and bytes of a selection, computed from those before if known."""
    if not selection.rules:
        return Extent.of_totals(commit.info.totals)
    if applied is None or before is None:
        return Extent.of(selection)
    return before.after(diff_selections(applied, selection))


def _directories_of(changed: set[RelPath], plan: Plan, selection: Selection) -> list[Directory]:
    """Return changed directories of the selection whose attributes `plan` does not set yet."""
    planned = {*paths(plan.directories)}
    directories = (selection.directory(path) for path in sorted(changed - planned))
    return [directory for directory in directories if directory is not None]
