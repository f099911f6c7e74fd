"""Syncs a module: brings its tree to the newest commit.

Fetches, plans, applies and records, again while the upstream changes (`follow`).  Only composes.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import repeat
from typing import TYPE_CHECKING

from msgspec.structs import replace

from huai_client.config.mirror import Mirror
from huai_client.diff.candidate import Difference
from huai_client.diff.files import digests, paths, sizes
from huai_client.metadata.checks import (
    TooLargeError,
    WrongModuleError,
    check_module_name,
    check_offer,
    check_serial,
    check_times,
    check_totals,
    is_rollback,
)
from huai_client.metadata.commit import Commit
from huai_client.metadata.failover import UntrustedError
from huai_client.metadata.http import ListedUrl, MetadataUrl, RolledBackError
from huai_client.metadata.repository import DamagedRepositoryError, Repository
from huai_client.metadata.signatures import ExpiredError, Signatures
from huai_client.metadata.upstream import Upstream
from huai_client.plan.build import PlanBuilder
from huai_client.plan.operations import Plan
from huai_client.plan.prepared import PreparedPlan
from huai_client.plan.protect import Protection
from huai_client.publish.destination import Destination
from huai_client.publish.executor import execute
from huai_client.run.options import NEVER, SyncOptions
from huai_client.state.seen import SeenDigests, delete
from huai_client.state.state import StateError, applied_id, load
from huai_client.sync.apply import PlanRunner, follow_plan, nothing_staged, result_of
from huai_client.sync.follow import Following
from huai_client.sync.record import Accepted, ModuleRecord, state_after
from huai_client.sync.result import Observer, SyncResult
from huai_client.transfer.content import UpstreamContent
from huai_client.tree import STAGING_NAME, Tree, View
from huai_client.tree.destination import check_space
from huai_schema.errors import ExitCode, FormatError, HuaiError, MissingObjectError
from huai_schema.paths import ROOT

if TYPE_CHECKING:
    from huai_client.proofs.prover import Prover

Approve = Callable[[PreparedPlan], None]
"""A check of a plan before it is carried out, which raises to refuse it."""


_REFUSED = FormatError, TooLargeError, UntrustedError
"""Errors for which a fetched commit is dropped, and remembered as refused."""
_PASSING = WrongModuleError, RolledBackError, ExpiredError
"""Errors for which it is dropped, and may be fetched again."""


class Sync:
    """A run for one module; the caller holds the module's lock."""

    def __init__(self, mirror: Mirror, options: SyncOptions, upstream: Upstream) -> None:
        """Read the state and the configuration, and open the repository; not the tree."""
        self._mirror = mirror
        self._options = options
        self._upstream = upstream
        state = load(mirror.paths.state)  # first: fails before anything is created
        timeout = mirror.config.timeout
        accepted = state.serial, state.identity
        self._repository = Repository(mirror.paths.repository, timeout=timeout, accepted=accepted)
        if options.adopt or options.accept_rollback:
            self._repository.forget_refused()
        self._signatures = Signatures(mirror)
        basis = (mirror.config, self._signatures.basis, state.applied)
        self._repository.judge_by(basis)
        self._news = ""
        self._record = ModuleRecord(mirror, self._repository, state)
        self._content = UpstreamContent(mirror, upstream)
        self._builder = PlanBuilder(mirror, options, self._repository)
        if mirror.config.filter or options.filter:
            self._repository.sparse.limit_to(self._builder.rules)
        self._destination = Destination(mirror)
        shares = mirror.config.duplicates == "hardlink"
        shared = Protection(mirror.config.protected) if shares else None
        self._runner = PlanRunner(
            *(self._content, self._destination, self._record, _prover(mirror)),
            shared=shared,
            deadline=upstream.deadline,
        )
        # Renaming a directory would move pointers along that were not proved.
        self._builder.moves = not mirror.config.proofs

    def prepare(self) -> PreparedPlan:
        """Fetch the newest metadata, and return the plan to show; change nothing in the tree."""
        self._builder.refuses = False
        with View(self._mirror.dest, owners=self._mirror.config.owners) as view:
            return self._prepare(view)

    def run(self, observer: Observer, approve: Approve) -> SyncResult:
        """Bring the tree to the newest commit; plan again while the upstream changes.

        `approve` is called with each plan, before anything is staged; it may raise.  Raises
        `UpstreamError`, the errors of checks and limits that refuse a commit or a plan, and those
        of `PlanRunner.apply`.
        """
        # Waiting brings no commit of an upstream that is listed.
        following = Following(patience=0.0) if self._is_listed else Following()
        while True:
            result = self._round(observer, approve)
            if not self._must_plan_again(result, following):
                nothing_at = self._nothing_at(result)
                valid_until = self._signatures.valid_until(result.commit)
                plans = following.plans
                result = replace(result, news=self._news, valid_until=valid_until)
                return replace(result, plans=plans, nothing_at=nothing_at, listed=self._is_listed)

    def repair(self, damage: list[Difference], observer: Observer) -> SyncResult:
        """Bring the paths in `damage` back to the applied commit; raises as `run` does."""
        commit, before = self._applied_commit(), self._record.state
        with self._destination.open(before) as tree:
            prepared = self._builder.repair(tree, commit, before, damage)
            observer.planned(prepared)
            result = self._apply(prepared, tree, self._accepted(commit), observer)
        if result.exit_code == ExitCode.OK:
            self._record.save(replace(before, trash=self._record.state.trash))
        return result

    def delete_due(self, observer: Observer) -> SyncResult:
        """Delete delayed paths and trash that are due; the newest commit is already applied."""
        commit, record = self._applied_commit(), self._record
        with self._destination.open(record.state) as tree:
            prepared = self._builder.due(tree, commit, record.state)
            observer.planned(prepared)
            with self._seen_digests(prepared.plan, observer) as seen_digests:
                if seen_digests is not None:
                    follow_plan(seen_digests, prepared.plan)
            report = execute(prepared.plan, tree, nothing_staged, observer.step)
            state = self._destination.after_changes(tree, commit, record.state, prepared.modes)
        result = result_of(prepared, record, report)
        if result.exit_code == ExitCode.OK:
            record.save_pending(prepared)
            record.save(state)
        return result

    def _round(self, observer: Observer, approve: Approve) -> SyncResult:
        """Fetch, plan and apply once; record the commit as applied after success without `only`."""
        record = self._record
        with self._destination.open(record.state) as tree:
            with observer.listener.phase("reading metadata, planning"):
                prepared = self._prepare(tree)
            approve(prepared)
            self._news = self._news or self._signatures.news(prepared.commit.id)
            self._signatures.keep(prepared.commit.id)
            observer.planned(prepared)
            accepted = self._accepted(prepared.commit)
            result = self._apply(prepared, tree, accepted, observer)
        if result.exit_code == ExitCode.OK and self._options.only is None:
            record.save_pending(prepared)
            keeps = self._destination.keeps
            state = state_after(prepared, record.state, accepted, trash_kept=keeps)
            record.save_applied(prepared, state)
        return result

    def _apply(
        self, prepared: PreparedPlan, tree: Tree, accepted: Accepted, observer: Observer
    ) -> SyncResult:
        """Carry out a plan; the digests of what arrives are recorded where none are stated."""
        with self._seen_digests(prepared.plan, observer) as seen_digests:
            return self._runner.apply(prepared, tree, accepted, observer, seen_digests)

    def _seen_digests(
        self, plan: Plan, observer: Observer
    ) -> AbstractContextManager[SeenDigests | None]:
        """Open the seen digests; None without any, if `plan` fetches no file that states none.

        None as well if they cannot be opened: then reports that, and deletes the file.  Raises
        `StateError` if it cannot be deleted.
        """
        path = self._mirror.paths.seen_digests
        try:
            columns = zip(digests(plan.fetches), sizes(plan.fetches), strict=True)
            if path.exists() or any(digest is None and size for digest, size in columns):
                return SeenDigests(path)
        except StateError as error:
            observer.listener.retried(f"without digests of what arrives: {error.message}")
            delete(path)
        return nullcontext()

    @property
    def _is_listed(self) -> bool:
        """True for an upstream that does not run huai."""
        return isinstance(self._upstream.metadata.first, ListedUrl)

    def _must_plan_again(self, result: SyncResult, following: Following) -> bool:
        """Return True if the run has to plan again; may wait for a newer commit.

        That is if directories could not be renamed, which the next plan avoids, or if files did not
        arrive and the upstream has a newer commit.  Never after the deadline.
        """
        if self._upstream.deadline.over:
            return False
        if result.report and result.report.unmoved and self._builder.moves:
            self._builder.moves = False
            return True
        outcome = result.outcome
        if outcome is None or outcome.complete:
            return False
        failed = len(outcome.failed) - len(outcome.late)
        self._repository.doubted_paths = (*paths(outcome.missing), *paths(outcome.mismatched))
        return following.has_moved_on(failed, lambda: self._is_old(result.commit))

    # Metadata to plan

    def _prepare(self, view: View) -> PreparedPlan:
        """Fetch and plan; if the local repository is damaged, empty it and fetch all once more."""
        try:
            return self._fetch_and_plan(view)
        except (DamagedRepositoryError, MissingObjectError) as error:
            # An upstream with incomplete metadata must not destroy the local repository.
            applied = self._record.state.applied
            sound = isinstance(error, MissingObjectError)
            if sound and applied is not None and self._repository.has(applied):
                raise
        self._repository.start_over()
        return self._fetch_and_plan(view)

    def _fetch_and_plan(self, view: View) -> PreparedPlan:
        """Fetch and check the newest commit, and plan; remove a commit that a check refuses.

        One that is malformed, too large or untrusted is not fetched again for a day.
        """
        state, deadline = self._record.state, self._upstream.deadline
        metadata = self._upstream.metadata

        def fetch(url: MetadataUrl) -> Commit:
            """Fetch the newest commit of `url`, and report remarks."""
            newest = metadata.take_newest(url) or self._repository.find_newest(url, deadline)
            if not self._options.accept_rollback:
                check_offer(newest, state)
            judge = self._signatures.judge
            commit = self._repository.fetch(url, deadline, newest, judge)
            for remark in self._repository.remarks:
                metadata.report(remark)
            return commit

        commit = None
        try:
            commit = metadata.first_answer(fetch, self._is_behind)
            check_module_name(commit, self._mirror.upstream_name)
            if not self._options.accept_rollback:
                check_serial(commit, state)
                if self._mirror.config.list_source and self._has_applied:
                    check_times(commit, self._applied_commit())
            self._signatures.check(commit.id, commit.descriptor)
            self._check_totals(commit, view)
            hashes, stated = self._repository.listing_hashes, self._repository.sparse.hashes
            self._signatures.prove(commit.id, hashes, self._repository, stated)
            deadline.check("the metadata are here, and nothing was changed")
            # A whole tree would be compared again by the next run.
            with self._repository.until(NEVER if self._builder.walks(state) else deadline):
                prepared = self._builder.update(view, commit, state)
        except _REFUSED as error:
            self._repository.refuse(commit.id if commit else "", error)
            raise
        except _PASSING:
            self._repository.withdraw()
            raise
        except HuaiError:
            # Each such run adds objects, which otherwise only a successful run would clean up.
            self._repository.repack()
            raise
        self._repository.accept()
        return prepared._replace(unlisted=self._repository.warning)

    def _check_totals(self, commit: Commit, view: View) -> None:
        """Raise `TooLargeError` or `NoSpaceError` by the totals of `commit`; read no listing.

        The room for directories is not checked for a part of the tree, or before a first sync into
        a tree that is not empty.
        """
        has_applied = self._has_applied and not self._options.adopt
        before = self._applied_commit().info.totals if has_applied else None
        check_totals(commit, self._mirror.config, before, self._repository.packed)
        selects = self._builder.rules or self._options.only or self._mirror.config.protect
        leaves, folders = ([], []) if selects or before else view.listing(ROOT)
        if not selects and not leaves and {*folders} <= {STAGING_NAME}:
            # Files may turn out to be hardlinks; each new directory takes an inode.
            new = commit.info.totals.directories - (before.directories if before else 1)
            check_space(self._mirror.dest, repeat(0, max(0, new)))

    @property
    def _has_applied(self) -> bool:
        """True if a commit is applied, and its metadata are here."""
        applied = self._record.state.applied
        return applied is not None and self._repository.has(applied)

    def _accepted(self, commit: Commit) -> Accepted:
        """Return what the state records of a commit.

        That is the highest serial seen (with `accept_rollback` its own), the module's identity, and
        the end of the signature.
        """
        serial = commit.info.serial
        if not self._options.accept_rollback:
            serial = max(serial, self._record.state.serial)
        valid_until = self._signatures.valid_until(commit.id)
        return Accepted(serial, commit.descriptor.identity, valid_until)

    def _applied_commit(self) -> Commit:
        """Return the applied commit, read from the local repository."""
        state = self._record.state
        commit = self._repository.commit(applied_id(state, self._mirror.upstream_name))
        return commit._replace(relay_urls=state.relay_urls)

    # The upstream

    def _nothing_at(self, result: SyncResult) -> tuple[str, ...]:
        """Return the content URLs if they have no file of the newest commit, else none.

        A single missing file does not count: the upstream may have deleted it since.
        """
        outcome, reused = result.outcome, result.reused
        if outcome is None or not outcome.missing or outcome.failed != outcome.missing:
            return ()
        fetched = len(outcome.arrived) - (reused.files if reused else 0)
        one_of_many = len(outcome.missing) == 1 and self._record.state.applied is not None
        if fetched > 0 or one_of_many or result.prepared is None or self._is_old(result.commit):
            return ()
        return tuple(map(str, self._content.urls(result.prepared.commit)))

    def _is_old(self, commit: str) -> bool:
        """Return True if the upstream's newest commit is another one."""
        return self._upstream.metadata.first_answer(self._repository.newest_commit) != commit

    def _is_behind(self, commit: Commit) -> bool:
        """Return True if `check_serial` would refuse `commit`: try another upstream.

        Never with `accept_rollback`.
        """
        return not self._options.accept_rollback and is_rollback(commit, self._record.state)


def _prover(mirror: Mirror) -> "Prover | None":
    """Return the prover for the pointers of package repositories, if any is configured."""
    if not mirror.config.proofs:
        return None
    from huai_client.proofs.prover import Prover

    return Prover(mirror)
