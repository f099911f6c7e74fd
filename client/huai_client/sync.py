"""Syncing a module: from the newest commit to a tree that equals it.

Only composes.  Order of writes: the attempt is recorded before the first change to the tree;
content is staged and verified before anything is published; deletions come last; the
applied commit is recorded when all of it is on the disk.  A run that was cut is finished by
the next one, which looks at what stands there instead of trusting a record of it.
"""

import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from huai_client import state as states
from huai_client.config import Module
from huai_client.execute import Report, execute
from huai_client.operations import Plan
from huai_client.options import SyncOptions
from huai_client.places import ModulePlaces
from huai_client.plan import make_plan, settle, touched
from huai_client.preconditions import (
    check_destination,
    check_module,
    check_serial,
    check_space,
    content_urls,
)
from huai_client.stages import stage_of
from huai_client.staging import Staging
from huai_client.state import State
from huai_client.store import Commit, Repository
from huai_client.summary import Summary, check_deletions, summarize
from huai_client.survey import Survey, survey_changes, survey_damage, survey_whole
from huai_client.transfer import Listener, Outcome, TransferOptions, fetch
from huai_client.tree import STAGING, Tree, View
from huai_client.upstream import MetadataUrl, is_http, newest_commit
from huai_client.verify import Difference, verify
from huai_client.withhold import withhold
from huai_schema.entries import Directory
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import ROOT, RelPath

_RESTARTS = 5
"""How often one run follows an upstream that moves on under it."""


class _MovedOnError(Exception):
    """The upstream has a newer commit, and the content of the old one is no longer there."""


class NotSyncedError(HuaiError):
    """There is no applied commit."""

    exit_code = ExitCode.DIFFERS


class Prepared(NamedTuple):
    """A plan that was not carried out yet."""

    commit: Commit
    plan: Plan
    summary: Summary
    survey: Survey


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What a run did."""

    commit: str
    serial: int
    total_bytes: int
    """Of all files of the module."""
    prepared: Prepared | None = None
    """None: there was nothing new."""
    report: Report | None = None
    outcome: Outcome | None = None

    @property
    def exit_code(self) -> ExitCode:
        """How the program should end."""
        if self.outcome and self.outcome.mismatched:
            return ExitCode.MISMATCH
        if self.outcome and self.outcome.missing:
            return ExitCode.VANISHED
        if self.report and self.report.problems:
            return ExitCode.PARTIAL
        return ExitCode.OK


class Observer(NamedTuple):
    """Who is told how a run goes."""

    listener: Listener
    planned: Callable[[Prepared], None]
    """Called before the first byte is moved."""
    step: Callable[[str, RelPath], None]
    """Called after each change to the tree."""


class Sync:
    """One run for one module; the caller holds the module's lock."""

    def __init__(
        self, name: str, module: Module, places: ModulePlaces, options: SyncOptions
    ) -> None:
        """Read the state; nothing else is touched yet."""
        self._name = module.upstream_name or name
        self._module = module
        self._places = places
        self._options = options
        self._metadata = MetadataUrl.of(module.url, self._name)
        self._state = states.load(places.state)

    @property
    def state(self) -> State:
        """What is recorded about the tree."""
        return self._state

    def damage(self, *, content: bool) -> Iterator[Difference]:
        """What differs between the tree and the applied commit; reads, changes nothing."""
        commit = self._applied_commit(Repository(self._places.repository))
        with View(Path(self._module.dest)) as view:
            yield from verify(view, commit.snapshot.entries(), content=content, owners=True)

    def repair(self, damage: Collection[Difference], observer: Observer) -> SyncResult:
        """Bring the paths in `damage` back to what the applied commit says."""
        repository = Repository(self._places.repository)
        commit = self._applied_commit(repository)
        with Tree(Path(self._module.dest)) as tree:
            survey = survey_damage(
                tree, damage, commit.snapshot, delete_strangers=self._options.delete_strangers
            )
            prepared = self._plan(survey, commit, commit)
            observer.planned(prepared)
            return self._carry_out(prepared, tree, repository, observer, follow=False)

    def prepare(self) -> Prepared:
        """Fetch the newest metadata and plan; changes nothing in the tree."""
        repository = Repository(self._places.repository)
        with View(Path(self._module.dest)) as view:
            return self._prepare(view, repository)

    def run(self, observer: Observer) -> SyncResult:
        """Bring the tree to the newest commit."""
        repository = Repository(self._places.repository)
        for _ in range(_RESTARTS):
            with suppress(_MovedOnError):
                return self._round(repository, observer, follow=True)
        return self._round(repository, observer, follow=False)

    def _round(self, repository: Repository, observer: Observer, *, follow: bool) -> SyncResult:
        with Tree(Path(self._module.dest)) as tree:
            prepared = self._prepare(tree, repository)
            observer.planned(prepared)
            return self._carry_out(prepared, tree, repository, observer, follow=follow)

    def _prepare(self, view: View, repository: Repository) -> Prepared:
        commit = repository.fetch(self._metadata)
        state = self._state
        check_module(commit, self._name)
        if not self._options.accept_rollback:
            check_serial(commit, state)
        applied = self._applied(repository)
        if applied is None:
            survey = survey_whole(
                view, commit.snapshot, delete_strangers=self._options.delete_strangers
            )
        else:
            check_destination(view, applied.snapshot)
            attempted = [repository.commit(one) for one in state.attempted if repository.has(one)]
            past = [each.snapshot for each in (applied, *attempted)]
            survey = survey_changes(view, past, commit.snapshot)
        return self._plan(survey, commit, applied or commit)

    def _plan(self, survey: Survey, commit: Commit, before: Commit) -> Prepared:
        plan = make_plan(survey.candidates, survey.moves, stage_of)
        plan = settle(plan, self._disturbed(plan, commit))
        summary = summarize(plan)
        limit = self._options.max_delete or self._module.max_delete
        check_deletions(summary, limit, before.info.totals.entries)
        return Prepared(commit, plan, summary, survey)

    def _applied_commit(self, repository: Repository) -> Commit:
        if self._state.applied is None:
            raise NotSyncedError(
                f"{self._name}: was never synced", hint="run huai-client sync first"
            )
        return repository.commit(self._state.applied)

    def _applied(self, repository: Repository) -> Commit | None:
        """The applied commit; None if the whole tree has to be compared."""
        state = self._state
        if state.applied is None or self._options.adopt or not repository.has(state.applied):
            return None
        return repository.commit(state.applied)

    def _disturbed(self, plan: Plan, commit: Commit) -> list[Directory]:
        found = (commit.snapshot.directory(path) for path in sorted(touched(plan)))
        return [directory for directory in found if directory is not None]

    def _carry_out(
        self,
        prepared: Prepared,
        tree: Tree,
        repository: Repository,
        observer: Observer,
        *,
        follow: bool,
    ) -> SyncResult:
        """Transfer, publish, record; with `follow`, `_MovedOnError` where a new plan helps."""
        commit, plan = prepared.commit, prepared.plan
        if prepared.summary.nothing:
            self._finish(commit, repository)
            return self._result(prepared, None, None)
        with Staging(tree.dest / os.fsdecode(STAGING)) as staging:
            outcome = self._transfer(prepared, tree, staging, observer)
            if not outcome.complete:
                if follow and self._newest(repository) != commit.id:
                    raise _MovedOnError
                plan = withhold(plan, {*outcome.missing, *outcome.mismatched})
            self._record_attempt(commit, repository)
            report = execute(plan, tree, staging.path_of, observer.step)
            result = self._result(prepared, report, outcome)
            if result.exit_code == ExitCode.OK:
                staging.remove()
        if result.exit_code == ExitCode.OK:
            # Removing the staging area was the last change to the top directory.
            if top := commit.snapshot.directory(ROOT):
                tree.set_directory(top)
            self._finish(commit, repository)
        return result

    def _transfer(
        self, prepared: Prepared, tree: Tree, staging: Staging, observer: Observer
    ) -> Outcome:
        files = [file for stage in prepared.plan.stages for file in stage.fetches]
        waiting = [file for file in files if not staging.ready(file)]
        check_space(tree.dest, waiting)
        if not waiting:
            return Outcome(files, [], [], 0)
        module = self._module
        options = TransferOptions(
            streams=module.streams,
            batch_files=module.batch_files,
            batch_bytes=module.batch_size,
            bwlimit=module.bwlimit,
            timeout=module.timeout,
            extra=module.rsync_options,
        )
        urls = content_urls(module.content_urls, prepared.commit.descriptor)
        return fetch(files, urls, tree.dest, staging, options, observer.listener)

    def _newest(self, repository: Repository) -> str:
        if is_http(self._metadata.url):
            return newest_commit(self._metadata)
        return repository.newest_commit(self._metadata)

    def _record_attempt(self, commit: Commit, repository: Repository) -> None:
        """From here on the tree may be anything between the commits that are named."""
        state = self._state
        attempted = tuple(dict.fromkeys((*state.attempted, commit.id)))
        serial = commit.info.serial
        if not self._options.accept_rollback:
            serial = max(serial, state.serial)
        self._state = replace(state, attempted=attempted, serial=serial)
        self._save(repository)

    def _finish(self, commit: Commit, repository: Repository) -> None:
        self._state = State(commit.id, commit.info.serial, (), int(time.time()))
        self._save(repository)

    def _save(self, repository: Repository) -> None:
        # The refs first: a state that names a commit must never lack it.
        named = {self._state.applied, *self._state.attempted} - {None}
        repository.keep({commit for commit in named if commit and repository.has(commit)})
        states.save(self._places.state, self._state)

    def _result(
        self, prepared: Prepared, report: Report | None, outcome: Outcome | None
    ) -> SyncResult:
        info = prepared.commit.info
        return SyncResult(
            prepared.commit.id, info.serial, info.totals.bytes, prepared, report, outcome
        )
