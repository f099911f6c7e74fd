"""Planning one run: from the commit that is wanted and the tree that is there to a plan.

Only composes: what was recorded, the survey, the publish order, the limits.  Changes nothing.
"""

import time
from functools import cached_property, partial
from typing import NamedTuple

from huai_client.config import Module
from huai_client.diff.active_filter import rules_of
from huai_client.diff.candidates import Survey, survey_changes, survey_damage, survey_whole
from huai_client.diff.destination import check_destination
from huai_client.diff.extent import Extent
from huai_client.diff.findings import Difference
from huai_client.diff.moves import nowhere
from huai_client.diff.selection import Selection
from huai_client.diff.selections import differences
from huai_client.diff.symlinks import left_out
from huai_client.filters import Rules
from huai_client.metadata.repository import Commit, Repository
from huai_client.plan.guard import Firewall
from huai_client.plan.operations import Plan
from huai_client.plan.planner import make_plan, settle, touched
from huai_client.plan.prepared import Prepared
from huai_client.plan.publish_rules import Publication
from huai_client.plan.restrict import in_part
from huai_client.plan.reuse.inodes import parted
from huai_client.plan.reuse.sources import Sources
from huai_client.plan.summary import TooManyDeletionsError, check_deletions, summarize
from huai_client.plan.volatile import volatile_fetches
from huai_client.run_options import SyncOptions
from huai_client.state import delayed_record
from huai_client.state.paths import ModulePlaces
from huai_client.state.state import State
from huai_client.tree import View
from huai_schema.entries import Directory
from huai_schema.paths import RelPath


class _Goal(NamedTuple):
    """What the tree is to be like."""

    commit: Commit
    selection: Selection
    extent: Extent
    former: Selection
    """What deletions are deletions from."""


class Planning:
    """What all plans of one run have in common."""

    def __init__(
        self, module: Module, places: ModulePlaces, options: SyncOptions, repository: Repository
    ) -> None:
        """`repository` holds the commits that are planned for."""
        self._module = module
        self._places = places
        self._options = options
        self._repository = repository
        self.firewall = Firewall(module, options.max_delete_in, options.undeletable)
        self.moves = True
        """Whether directories may be renamed whole: some file systems cannot."""

    @cached_property
    def rules(self) -> Rules:
        """What is mirrored from now on."""
        return rules_of(self._module, self._places, self._options)

    def walks(self, state: State) -> bool:
        """Whether an update has to compare the whole tree."""
        whole = self._options.adopt or self._options.compare
        return whole or self._past(state)[0] is None

    def update(
        self, view: View, commit: Commit, state: State, rules: Rules | None = None
    ) -> Prepared:
        """Bring the tree from what `state` says to `commit`; `rules` instead of the present."""
        applied, attempted = self._past(state)
        past = [each for each in (applied, *attempted) if each is not None]
        wanted = Selection(commit.snapshot, self.rules if rules is None else rules)
        if applied is not None and not self._options.adopt:
            check_destination(view, past)
        if self.walks(state):
            extraneous = self._options.delete_extraneous
            tick = partial(self._options.deadline.check, "the tree was compared in part")
            survey = survey_whole(view, past, wanted, delete_extraneous=extraneous, tick=tick)
        else:
            may_move = self.firewall.may_move(view) if self.moves else nowhere
            survey = survey_changes(view, past, wanted, may_move)
            survey = self._parted(survey, cut=len(past) > 1)
        before = None if applied is None else self._recorded(state)
        goal = _Goal(commit, wanted, _extent(commit, wanted, applied, before), applied or wanted)
        survey = self.firewall.shielded(survey, view)
        # Where nothing was applied, deletions are a share of what is here, not of what is to come.
        present = before or Extent(_entries_here(survey, goal.extent), 0)
        prepared = self._plan(survey, goal, present, view)
        return in_part(self._reusing(prepared, view, sure=True), self._options.only)

    def repair(
        self, view: View, commit: Commit, state: State, damage: list[Difference]
    ) -> Prepared:
        """Bring the paths in `damage` back to what `commit`, the applied one, says."""
        goal = self._applied(commit, state)
        extraneous = self._options.delete_extraneous
        survey = survey_damage(view, damage, goal.selection, delete_extraneous=extraneous)
        prepared = self._plan(self.firewall.shielded(survey, view), goal, goal.extent)
        return self._reusing(prepared, view, sure=False)

    def due(self, view: View, commit: Commit, state: State) -> Prepared:
        """Delete what has waited long enough; the tree is at `commit` otherwise."""
        goal = self._applied(commit, state)
        check_destination(view, [goal.selection])
        return self._plan(Survey([], [], []), goal, goal.extent, view)

    def _safe(self, survey: Survey) -> Survey:
        """The survey without symlinks that are left out; what stands in their place stays."""
        if not self._module.safe_links:
            return survey
        kept = [each for each in survey.candidates if not left_out(each.wanted)]
        return survey._replace(candidates=kept)

    def _parted(self, survey: Survey, *, cut: bool) -> Survey:
        """The survey with inodes of their own for names that must not share one any more."""
        shares = self._module.duplicates == "hardlink"
        if not cut and not shares:
            return survey
        return survey._replace(candidates=parted(survey.candidates, may_share=shares))

    def _reusing(self, prepared: Prepared, view: View, *, sure: bool) -> Prepared:
        """The plan without the transfer of what is here."""
        sources = Sources(self._module, self._places)
        candidates = prepared.survey.candidates
        plan = sources.added(prepared.plan, candidates, view, prepared.commit, sure=sure)
        summary = summarize(plan)._replace(delayed=prepared.summary.delayed)
        return prepared._replace(plan=plan, summary=summary)

    def _applied(self, commit: Commit, state: State) -> _Goal:
        selection = applied_selection(commit, state)
        return _Goal(commit, selection, self._recorded(state), selection)

    def _recorded(self, state: State) -> Extent:
        """How much the applied commit brought here."""
        if state.applied and not state.entries:  # by a version that knew no filters
            return Extent.of_totals(self._repository.commit(state.applied).info.totals)
        return Extent(state.entries, state.total_bytes)

    def _past(self, state: State) -> tuple[Selection | None, list[Selection]]:
        """What was applied and what was attempted since, as far as the commits are here.

        Nothing applied means that the whole tree has to be compared: nothing was, its commit is
        not here any more, or a repair of the tree was interrupted.
        """
        repository = self._repository
        here = [(commit, key) for commit, key in state.attempts if repository.has(commit)]
        attempted = [
            Selection(repository.commit(commit).snapshot, Rules.from_key(key))
            for commit, key in here
        ]
        known = len(here) == len(state.attempts) and (state.applied, state.filter) not in here
        if state.applied is None or not known or not repository.has(state.applied):
            return None, attempted
        return applied_selection(repository.commit(state.applied), state), attempted

    def _plan(
        self, survey: Survey, goal: _Goal, before: Extent, view: View | None = None
    ) -> Prepared:
        """Plan; with `view`, deletions may wait, and those that waited may be due."""
        commit, rules = goal.commit, goal.selection.rules
        waiting = self.firewall.without_protected(delayed_record.load(self._places.delayed))
        publication = Publication(commit, self._module, waiting, rules)
        survey = self._safe(publication.narrowed(survey, view))
        plan = make_plan(survey.candidates, survey.moves, publication.order.stage_of)
        limit = self._options.max_delete or self._module.max_delete
        refused = self._refused(plan, limit, before, goal.former)
        found = publication.put_off(plan, view, int(time.time()))
        publication.check_due(found.plan, limit, goal.extent.entries)
        for removals in publication.due(found.plan):
            self.firewall.check(removals, goal.former)
        disturbed = touched(found.plan) | publication.bereft(view)
        plan = settle(found.plan, _unsettled(found.plan, goal.selection, disturbed))
        summary = summarize(plan)._replace(delayed=found.put_off)
        repositories = tuple(publication.order.repositories)
        return Prepared(
            commit,
            plan,
            summary,
            survey,
            tuple(found.waiting),
            repositories,
            extent=goal.extent,
            filter=rules.key(),
            territory=publication.order,
            volatile=volatile_fetches(plan, publication.order.is_volatile),
            refused=refused,
        )

    def _refused(self, plan: Plan, limit: str, before: Extent, former: Selection) -> str:
        """Why a sync would not do this; for a filter that is only tried, else it is an error."""
        try:
            check_deletions(summarize(plan), limit, before.entries)
            self.firewall.check((*plan.clear, *plan.removals), former)
        except TooManyDeletionsError as error:
            if self._options.filter is None:
                raise
            return error.message
        return ""


def applied_selection(commit: Commit, state: State) -> Selection:
    """What `commit`, the applied one, brought here."""
    return Selection(commit.snapshot, Rules.from_key(state.filter))


def _extent(
    commit: Commit, wanted: Selection, applied: Selection | None, before: Extent | None
) -> Extent:
    """How much `wanted` is; looked through as a whole only if nothing is known of before."""
    if not wanted.rules:
        return Extent.of_totals(commit.info.totals)
    if applied is None or before is None:
        return Extent.of(wanted)
    return before.after(differences(applied, wanted))


def _entries_here(survey: Survey, wanted: Extent) -> int:
    """How many entries a tree holds that was compared as a whole with `wanted`."""
    missing = sum(each.have is None and not each.special for each in survey.candidates)
    extra = sum(each.wanted is None for each in survey.candidates)
    return wanted.entries - missing + extra + len(survey.extraneous)


def _unsettled(plan: Plan, wanted: Selection, disturbed: set[RelPath]) -> list[Directory]:
    """Directories in which something changed or will, without it being said in the plan."""
    settled = {directory.path for directory in plan.directories}
    found = (wanted.directory(path) for path in sorted(disturbed - settled))
    return [directory for directory in found if directory is not None]
