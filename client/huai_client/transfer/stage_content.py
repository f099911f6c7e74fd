"""The content of the files of one plan: from this machine as far as it is here, else from upstream.

Only composes.  Knows where content may come from, and that there has to be room for it.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from huai_client.config import Module
from huai_client.durations import seconds
from huai_client.metadata.repository import Commit
from huai_client.metadata.upstream import Upstream
from huai_client.plan.operations import Plan
from huai_client.plan.prepared import Prepared
from huai_client.plan.reuse.sources import roomless
from huai_client.transfer import ContentUrl, Listener, Outcome, TransferOptions, fetch
from huai_client.transfer.local import Trust
from huai_client.transfer.stage import Brought, bring
from huai_client.transfer.staging import Staging, key_of
from huai_client.transfer.urls import upstream_urls
from huai_client.tree import STAGING, Tree
from huai_client.tree.space import NoSpaceError, check_space
from huai_schema.entries import File
from huai_schema.paths import RelPath

_CLOCK_STEP = 1
"""Seconds: a time that was recorded is cut to whole ones."""


class Supply:
    """What one run has at hand."""

    def __init__(self, module: Module, upstream: Upstream) -> None:
        """`ContentUrlError` for an invalid content URL."""
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
            deadline=upstream.deadline,
            hosts=upstream.hosts,
        )

    def check(self, prepared: Prepared, tree: Tree) -> None:
        """Before the first change: there has to be an upstream, and room."""
        files = wanted_content(prepared.plan)
        if any(file.path not in prepared.plan.reuses for file in files):
            self.urls(prepared.commit)
        if tree.stat(STAGING) is None:
            no_room = roomless(prepared.plan)
            check_space(tree.dest, (file for file in files if file.path not in no_room))

    def bring(
        self, prepared: Prepared, tree: Tree, staging: Staging, listener: Listener, synced: int
    ) -> Brought:
        """Stage the content of all files; `synced`: when the last sync ended well, in seconds."""
        plan = prepared.plan
        volatile = prepared.volatile
        files = sorted(wanted_content(plan), key=lambda file: file.path in volatile)
        staging.prune({key_of(file) for file in files})
        paths = [file.path for file in files]

        def transfer(wanted: Sequence[File]) -> Outcome:
            absent = _recovered(wanted, staging, paths)
            _check_room(tree.dest, absent, staging)
            urls = self.urls(prepared.commit) if absent else []
            options = replace(self._options, volatile=volatile)
            return fetch(wanted, urls, tree.dest, staging, options, listener)

        until = (synced + _CLOCK_STEP) * 10**9
        trust = Trust(until, self._hardlink, self._options.deadline)
        return bring(files, plan.reuses, tree, staging, trust, transfer)

    def urls(self, commit: Commit) -> list[ContentUrl]:
        """Where the content of `commit` is; `ContentUrlError` if nobody says."""
        return self._own_urls or upstream_urls(commit.descriptor)


def _recovered(wanted: Sequence[File], staging: Staging, paths: Sequence[RelPath]) -> list[File]:
    """Those of `wanted` that have to be transferred.

    First what an interrupted run left is looked at: it is content that is here, or takes room that
    nobody needs; `paths` are those of all files of the plan.
    """
    absent = [file for file in wanted if not staging.ready(file)]
    if absent:
        with staging.exclusive():
            staging.recover(absent)
            staging.drop_partials(paths)
        absent = [file for file in absent if not staging.ready(file)]
    return absent


def _check_room(dest: Path, absent: Sequence[File], staging: Staging) -> None:
    """There has to be room, if need be that of beginnings, which only save transfer."""
    try:
        check_space(dest, absent)
    except NoSpaceError:
        with staging.exclusive():
            staging.drop_partials()
        check_space(dest, absent)


def wanted_content(plan: Plan) -> list[File]:
    """The files that get other content than is there."""
    return [file for stage in plan.stages for file in stage.fetches]
