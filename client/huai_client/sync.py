"""Syncing a module: from the newest commit to a tree that equals it.

Only composes.  Order of writes: the attempt is recorded before the first change to the tree;
content is staged and verified before anything is published; deletions come last; the
applied commit is recorded when all of it is on the disk, after the deletions that wait.  A run
that was cut is finished by the next one, which looks at what stands there instead of trusting
a record of it.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from huai_client import state as states
from huai_client.config import Module
from huai_client.execute import Report, execute
from huai_client.following import Following
from huai_client.gitfetch import MissingObjectError
from huai_client.options import SyncOptions
from huai_client.places import ModulePlaces
from huai_client.planning import Planning
from huai_client.preconditions import (
    check_module,
    check_serial,
    check_space,
    upstream_urls,
)
from huai_client.publishing import waiting as waiting_file
from huai_client.results import Observer, Prepared, SyncResult
from huai_client.staging import Staging, key_of
from huai_client.state import State
from huai_client.store import Commit, DamagedRepositoryError, Repository
from huai_client.transfer import ContentUrl, Outcome, TransferOptions, fetch
from huai_client.tree import STAGING, Tree, View
from huai_client.upstream import MetadataUrl
from huai_client.verify import Difference, Kind, verify
from huai_client.withhold import withhold
from huai_schema.entries import File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import ROOT, parent


class _MovedOnError(Exception):
    """The upstream has a newer commit, and the content of the old one is no longer there."""


class NotSyncedError(HuaiError):
    """There is no applied commit."""

    exit_code = ExitCode.DIFFERS


class Sync:
    """One run for one module; the caller holds the module's lock."""

    def __init__(
        self, name: str, module: Module, places: ModulePlaces, options: SyncOptions
    ) -> None:
        """Read the state; the tree is not touched yet."""
        self._name = module.upstream_name or name
        self._module = module
        self._places = places
        self._options = options
        self._metadata = MetadataUrl.of(module.url, self._name)
        self._state = states.load(places.state)
        self._transfer_options = _transfer_options(module)
        self._own_urls = [ContentUrl.parse(url) for url in module.content_urls]
        self._repository = Repository(places.repository, timeout=module.timeout)
        self._planning = Planning(module, places, options, self._repository)

    def damage(self, *, content: bool) -> Iterator[Difference]:
        """What differs between the tree and the applied commit; reads, changes nothing."""
        commit = self._applied_commit()
        waits = {each.path for each in waiting_file.load(self._places.waiting)}
        with View(Path(self._module.dest)) as view:
            for found in verify(view, commit.snapshot.entries(), content=content, owners=True):
                if found.kind is not Kind.STRANGER or found.path not in waits:
                    yield found

    def repair(self, damage: list[Difference], observer: Observer) -> SyncResult:
        """Bring the paths in `damage` back to what the applied commit says."""
        commit = self._applied_commit()
        before = self._state
        with Tree(Path(self._module.dest)) as tree:
            prepared = self._planning.repair(tree, commit, damage)
            observer.planned(prepared)
            result = self._carry_out(prepared, tree, observer, None)
        if result.exit_code == ExitCode.OK:
            self._save(before)
        return result

    def delete_due(self, observer: Observer) -> SyncResult:
        """Delete what has waited long enough; the tree is at the newest commit otherwise."""
        commit = self._applied_commit()
        with Tree(Path(self._module.dest)) as tree:
            prepared = self._planning.due(tree, commit)
            observer.planned(prepared)
            report = execute(prepared.plan, tree, _nothing_staged, observer.step)
        result = self._result(prepared, report, None)
        if result.exit_code == ExitCode.OK:
            self._save_waiting(prepared)
        return result

    def prepare(self) -> Prepared:
        """Fetch the newest metadata and plan; changes nothing in the tree."""
        with View(Path(self._module.dest)) as view:
            return self._prepare(view)

    def run(self, observer: Observer) -> SyncResult:
        """Bring the tree to the newest commit."""
        following = Following()
        while True:
            try:
                return replace(self._round(observer, following), plans=following.plans)
            except _MovedOnError:
                continue

    def _round(self, observer: Observer, following: Following) -> SyncResult:
        with Tree(Path(self._module.dest)) as tree:
            prepared = self._prepare(tree)
            observer.planned(prepared)
            result = self._carry_out(prepared, tree, observer, following)
        if result.exit_code == ExitCode.OK:
            self._save_waiting(prepared)
            self._finish(prepared.commit)
        return result

    def _prepare(self, view: View) -> Prepared:
        try:
            return self._prepared(view)
        except (DamagedRepositoryError, MissingObjectError) as error:
            # An upstream that sends half of it must not cost us what we have.
            applied = self._state.applied
            sound = isinstance(error, MissingObjectError)
            if sound and applied is not None and self._repository.has(applied):
                raise
        self._repository.start_over()
        return self._prepared(view)

    def _prepared(self, view: View) -> Prepared:
        commit = self._repository.fetch(self._metadata)
        check_module(commit, self._name)
        if not self._options.accept_rollback:
            check_serial(commit, self._state)
        return self._planning.update(view, commit, self._state)

    def _applied_commit(self) -> Commit:
        applied = self._state.applied
        if applied is None:
            raise NotSyncedError(
                f"{self._name}: was never synced to its end", hint="run huai-client sync first"
            )
        return self._repository.commit(applied)

    def _carry_out(
        self, prepared: Prepared, tree: Tree, observer: Observer, following: Following | None
    ) -> SyncResult:
        """Transfer and publish; with `following`, `_MovedOnError` where a new plan helps."""
        commit, plan = prepared.commit, prepared.plan
        if prepared.summary.nothing and tree.stat(parent(STAGING)) is None:
            return self._result(prepared, None, None)
        fetches = [file for stage in plan.stages for file in stage.fetches]
        urls = self._own_urls or upstream_urls(commit.descriptor) if fetches else []
        if tree.stat(STAGING) is None:
            check_space(tree.dest, fetches)
        with Staging(tree.dest / os.fsdecode(STAGING)) as staging:
            staging.prune({key_of(file) for file in fetches})
            check_space(tree.dest, (file for file in fetches if not staging.ready(file)))
            options = self._transfer_options
            outcome = fetch(fetches, urls, tree.dest, staging, options, observer.listener)
            if not outcome.complete:
                failed = {*outcome.missing, *outcome.mismatched}
                if following and following.has_moved_on(len(failed), lambda: self._is_old(commit)):
                    raise _MovedOnError
                plan = withhold(plan, failed)
            self._record_attempt(commit)
            report = execute(plan, tree, staging.path_of, observer.step)
            result = self._result(prepared, report, outcome)
            if result.exit_code == ExitCode.OK:
                staging.remove()
        # The staging area lies in the top directory, and goes after the tree was synced.
        if top := commit.snapshot.directory(ROOT):
            tree.set_directory(top)
        tree.sync_top()
        return result

    def _record_attempt(self, commit: Commit) -> None:
        """From here on the tree may be anything between the commits that are named."""
        state = self._state
        attempted = tuple(dict.fromkeys((*state.attempted, commit.id)))
        self._save(replace(state, attempted=attempted, serial=self._accepted_serial(commit)))

    def _is_old(self, commit: Commit) -> bool:
        return self._repository.newest_commit(self._metadata) != commit.id

    def _save_waiting(self, prepared: Prepared) -> None:
        waiting_file.save(self._places.waiting, prepared.waiting, now=int(time.time()))

    def _finish(self, commit: Commit) -> None:
        serial = self._accepted_serial(commit)
        total = commit.info.totals.bytes
        self._save(State(commit.id, serial, (), int(time.time()), total))
        self._repository.tidy()

    def _accepted_serial(self, commit: Commit) -> int:
        serial = commit.info.serial
        return serial if self._options.accept_rollback else max(serial, self._state.serial)

    def _save(self, state: State) -> None:
        # The refs first: a state that names a commit must never lack it.
        self._keep(state, self._state)
        states.save(self._places.state, state)
        self._keep(state)
        self._state = state

    def _keep(self, *named: State) -> None:
        commits = {each for state in named for each in (state.applied, *state.attempted) if each}
        self._repository.keep(commit for commit in commits if self._repository.has(commit))

    def _result(
        self, prepared: Prepared, report: Report | None, outcome: Outcome | None
    ) -> SyncResult:
        info = prepared.commit.info
        return SyncResult(
            prepared.commit.id, info.serial, info.totals.bytes, prepared, report, outcome
        )


def _nothing_staged(file: File) -> Path:
    raise AssertionError(file)  # a plan of deletions publishes nothing


def _transfer_options(module: Module) -> TransferOptions:
    return TransferOptions(
        streams=module.streams,
        batch_files=module.batch_files,
        batch_bytes=module.batch_size,
        bwlimit=module.bwlimit,
        timeout=module.timeout,
        extra=module.rsync_options,
    )
