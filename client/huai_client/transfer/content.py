"""Where the content of a plan's files comes from: this machine as far as it is here, else upstream.

Rule: a `ContentSource` puts verified files into the staging area and touches nothing else; what
does not come is told in the `Outcome`, never left out of it.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

from huai_client.config import Module
from huai_client.durations import seconds
from huai_client.metadata.commit import Commit
from huai_client.metadata.upstream import Upstream
from huai_client.plan.operations import Plan
from huai_client.plan.prepared import Prepared
from huai_client.transfer import ContentUrl, Listener, Outcome, TransferOptions, fetch
from huai_client.transfer.local import LocalContent, Reused, ReusePolicy
from huai_client.transfer.staging import Staging, key_of
from huai_client.transfer.urls import upstream_urls
from huai_client.tree import STAGING, Tree
from huai_client.tree.destination import NoSpaceError, check_space
from huai_schema.entries import File
from huai_schema.paths import RelPath

_CLOCK_STEP = 1
"""Seconds: a time that was recorded is cut to whole ones."""


class StagedContent(NamedTuple):
    """What became of the files of a plan."""

    outcome: Outcome
    reused: Reused


class ContentSource(Protocol):
    """Whoever brings the content of a plan."""

    def check(self, prepared: Prepared, tree: Tree) -> None:
        """Before the first change: whether the content can come, and there is room for it."""

    def stage(
        self, prepared: Prepared, tree: Tree, staging: Staging, listener: Listener, synced: int
    ) -> StagedContent:
        """Stage the content of all files; `synced`: when the last sync ended well, in seconds."""

    def urls(self, commit: Commit) -> list[ContentUrl]:
        """Where the content of `commit` is looked for beyond this machine."""


class UpstreamContent:
    """Content from the upstream, and from this machine as far as it is here."""

    def __init__(self, module: Module, lines: Upstream) -> None:
        """`ContentUrlError` for a content URL that is wrong."""
        self._own_urls = [ContentUrl.parse(url)._replace(own=True) for url in module.content_urls]
        self._hardlink = module.duplicates == "hardlink"
        self._options = TransferOptions(
            streams=module.streams,
            batch_files=module.batch_files,
            batch_bytes=module.batch_size,
            bwlimit=module.bwlimit,
            timeout=module.timeout,
            extra=module.rsync_options,
            patience=seconds(module.queue_time),
            connections=module.connections,
            deadline=lines.deadline,
            hosts=lines.hosts,
        )

    def check(self, prepared: Prepared, tree: Tree) -> None:
        """`ContentUrlError` if nobody says where the content is, `NoSpaceError` without room."""
        files = wanted_content(prepared.plan)
        if any(file.path not in prepared.plan.reuses for file in files):
            self.urls(prepared.commit)
        if tree.stat(STAGING) is None:
            free = needs_no_space(prepared.plan)
            check_space(tree.dest, (file for file in files if file.path not in free))

    def stage(
        self, prepared: Prepared, tree: Tree, staging: Staging, listener: Listener, synced: int
    ) -> StagedContent:
        """What is here is linked, cloned or copied; rsync brings the rest."""
        plan, volatile = prepared.plan, prepared.volatile
        files = sorted(wanted_content(plan), key=lambda file: file.path in volatile)
        staging.prune({key_of(file) for file in files})
        options = replace(self._options, volatile=volatile)
        until = (synced + _CLOCK_STEP) * 10**9
        policy = ReusePolicy(until, self._hardlink, options.deadline)
        with LocalContent(tree, staging, policy) as local:
            taken = local.take(files, plan.reuses)
            absent = _still_absent(taken.absent, files, tree.dest, staging)
            urls = self.urls(prepared.commit) if absent else []
            outcome = Outcome(taken.here, [], [], 0)
            outcome += fetch(taken.absent, urls, tree.dest, staging, options, listener)
            if taken.twins:
                local.copy_twins(taken.twins, files, plan.reuses)
                absent = _still_absent(taken.twins, files, tree.dest, staging)
                urls = self.urls(prepared.commit) if absent else []
                outcome += fetch(taken.twins, urls, tree.dest, staging, options, listener)
            return StagedContent(outcome, local.reused())

    def urls(self, commit: Commit) -> list[ContentUrl]:
        """Where the content of `commit` is; `ContentUrlError` if nobody says."""
        return self._own_urls or upstream_urls(commit.descriptor)


def _still_absent(
    wanted: Sequence[File], files: Sequence[File], dest: Path, staging: Staging
) -> list[File]:
    """Those of `wanted` that have to be transferred, and there is room for them.

    What an interrupted run left is looked at first: it is content that is here, or takes room that
    none of `files`, all those of the plan, needs.  Partial files only save transfer: they go if
    there is no room otherwise.  Raises `NoSpaceError`.
    """
    absent = [file for file in wanted if not staging.ready(file)]
    if not absent:
        return []
    with staging.exclusive():
        staging.recover(absent)
        staging.drop_partials([file.path for file in files])
        absent = [file for file in absent if not staging.ready(file)]
        try:
            check_space(dest, absent)
        except NoSpaceError:
            staging.drop_partials()
            check_space(dest, absent)
    return absent


def wanted_content(plan: Plan) -> list[File]:
    """The files that get other content than is there."""
    return [file for each in plan.stages for file in each.fetches]


def needs_no_space(plan: Plan) -> set[RelPath]:
    """Wanted files that take no room: they get an inode that is there."""
    return {path for path, reuse in plan.reuses.items() if reuse.names}
