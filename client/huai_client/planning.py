"""Planning one run: from the commit that is wanted and the tree that is there to a plan.

Only composes: what was recorded, the survey, the publish order, the limits.  Changes nothing.
"""

import time

from huai_client.config import Module
from huai_client.operations import Plan
from huai_client.options import SyncOptions
from huai_client.places import ModulePlaces
from huai_client.plan import make_plan, settle, touched
from huai_client.preconditions import check_destination
from huai_client.publication import Publication
from huai_client.publishing import waiting as waiting_file
from huai_client.results import Prepared
from huai_client.state import State
from huai_client.store import Commit, Repository
from huai_client.summary import check_deletions, summarize
from huai_client.survey import Survey, survey_changes, survey_damage, survey_whole
from huai_client.tree import View
from huai_client.verify import Difference
from huai_schema.entries import Directory


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

    def update(self, view: View, commit: Commit, state: State) -> Prepared:
        """Bring the tree from what `state` says to `commit`."""
        applied, attempted = self._past(state)
        past = [each.snapshot for each in (applied, *attempted) if each is not None]
        if applied is None or self._options.adopt:
            strangers = self._options.delete_strangers
            survey = survey_whole(view, past, commit.snapshot, delete_strangers=strangers)
        else:
            check_destination(view, past)
            survey = survey_changes(view, past, commit.snapshot)
        return self._plan(survey, commit, applied or commit, view)

    def repair(self, view: View, commit: Commit, damage: list[Difference]) -> Prepared:
        """Bring the paths in `damage` back to what `commit`, the applied one, says."""
        strangers = self._options.delete_strangers
        survey = survey_damage(view, damage, commit.snapshot, delete_strangers=strangers)
        return self._plan(survey, commit, commit)

    def due(self, view: View, commit: Commit) -> Prepared:
        """Delete what has waited long enough; the tree is at `commit` otherwise."""
        check_destination(view, [commit.snapshot])
        return self._plan(Survey([], [], []), commit, commit, view)

    def _past(self, state: State) -> tuple[Commit | None, list[Commit]]:
        """The applied commit and those that were attempted since, as far as they are here.

        No applied commit means that the whole tree has to be compared: there was none, it is
        not here any more, or a repair of the tree was cut.
        """
        repository = self._repository
        here = [commit for commit in state.attempted if repository.has(commit)]
        attempted = [repository.commit(commit) for commit in here]
        known = len(here) == len(state.attempted) and state.applied not in here
        if state.applied is None or not known or not repository.has(state.applied):
            return None, attempted
        return repository.commit(state.applied), attempted

    def _plan(
        self, survey: Survey, commit: Commit, before: Commit, view: View | None = None
    ) -> Prepared:
        """Plan; with `view`, deletions may wait, and those that waited may be due."""
        publication = Publication(commit, self._module, waiting_file.load(self._places.waiting))
        survey = publication.narrowed(survey, view)
        plan = make_plan(survey.candidates, survey.moves, publication.order.stage_of)
        limit = self._options.max_delete or self._module.max_delete
        check_deletions(summarize(plan), limit, before.info.totals.entries)
        found = publication.put_off(plan, view, int(time.time()))
        publication.check_due(found.plan, limit)
        plan = settle(found.plan, _disturbed(found.plan, commit))
        summary = summarize(plan)._replace(put_off=found.put_off)
        repositories = tuple(publication.order.repositories)
        return Prepared(commit, plan, summary, survey, tuple(found.waiting), repositories)


def _disturbed(plan: Plan, commit: Commit) -> list[Directory]:
    """Directories that the plan changes something in, without it being said in the plan."""
    settled = {directory.path for directory in plan.directories}
    found = (commit.snapshot.directory(path) for path in sorted(touched(plan) - settled))
    return [directory for directory in found if directory is not None]
