"""A small file of the newest commit, fetched from a content URL and compared with its metadata.

It is fetched by the code of a sync, confined and verified in the same way, into a temporary folder;
missing metadata are fetched into another one.  Rules to keep: nothing is written below DEST or the
state root; bytes and seconds are limited; one commit always has the same sample, the file that
changed last among those considered, because an outdated mirror lacks it.
"""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from huai_client.config.mirror import Mirror
from huai_client.diff.active_filter import rules_of
from huai_client.diff.selection import Selection
from huai_client.inspect.doctor.finding import Finding, fail, ok
from huai_client.metadata.checks import check_module_name, check_totals
from huai_client.metadata.commit import Commit
from huai_client.metadata.http import ListedUrl, MetadataUrl, UpstreamError
from huai_client.metadata.repository import Judge, Repository
from huai_client.metadata.signatures import Signatures
from huai_client.plan.build import publish_order
from huai_client.plan.operations import PAYLOAD
from huai_client.run.options import Deadline, SyncOptions
from huai_client.staging import Staging
from huai_client.state import state as states
from huai_client.transfer.fetch import fetch
from huai_client.transfer.listener import Listener
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.urls import ContentUrl
from huai_client.tree import STAGING
from huai_schema.codec.descriptor import Descriptor
from huai_schema.entries import File
from huai_schema.errors import ExitCode
from huai_schema.paths import show

_BYTES_MAX = 64 << 10
_ENTRIES = 50_000
"""The number of entries of a commit to consider."""
_JUDGED = 100
"""The number of files whose stage is determined, to find payload."""
_FOLDER = "huai-doctor-"
_FIX = (
    "check that it is this module's tree, and up to date, or name another one in content_urls; if "
    "the upstream is being updated, check again later"
)


class Sample(NamedTuple):
    """The upstream's newest commit, with a small and a large file to try content URLs with."""

    serial: int
    descriptor: Descriptor
    file: File | None
    """The file to fetch; None if the commit has no small file."""
    large: File | None
    """The largest file, to measure a web server; None if all files are empty."""
    content_urls: tuple[str, ...]
    """The content URLs that the upstream names."""


def choose_sample(mirror: Mirror, urls: Sequence[MetadataUrl], seconds: int) -> Sample:
    """Choose files of the newest commit; fetches missing metadata, in at most `seconds`.

    Raises `UpstreamError` or `TimeUpError` if they cannot be fetched, and the errors of a sync for
    a commit that it refuses.
    """
    deadline = Deadline.after(seconds)
    with tempfile.TemporaryDirectory(prefix=_FOLDER) as folder:
        repository = Repository(Path(folder, "newest.git"), timeout=seconds)
        local = newest_local(mirror)
        if local is not None:
            repository.borrow(mirror.paths.repository, local.id)
        rules = rules_of(mirror, SyncOptions())
        repository.sparse.limit_to(rules)
        if any(isinstance(url, ListedUrl) for url in urls):
            commit = _listed(local, urls[0])
        else:
            commit = _fetched(repository, urls, deadline, Signatures(mirror).judge)
        check_module_name(commit, mirror.upstream_name)
        check_totals(commit, mirror.config, local and local.info.totals, repository.packed)
        with repository.until(deadline):
            selection = Selection(commit.snapshot, rules)
            entries = islice(selection.entries(), _ENTRIES)
            files = [each for each in entries if isinstance(each, File) and each.size]
            large = max(files, key=lambda file: file.size, default=None)
            chosen = _chosen(mirror, commit, files)
            content_urls = commit.content_urls
            return Sample(commit.info.serial, commit.descriptor, chosen, large, content_urls)


def newest_local(mirror: Mirror) -> Commit | None:
    """Return the commit that was fetched last, else the applied one; None if neither is here.

    Raises `StateError` or `DamagedRepositoryError` for files that cannot be read.
    """
    if not mirror.paths.repository.exists():
        return None
    repository = Repository(mirror.paths.repository, make=False)
    for commit in (repository.fetched, states.load(mirror.paths.state).applied):
        if commit is not None and repository.has(commit):
            return repository.commit(commit)
    return None


def _listed(local: Commit | None, url: MetadataUrl) -> Commit:
    """Return `local`, the commit of the last list; raises `UpstreamError` without one.

    A check is not worth another list.
    """
    if local is None:
        raise UpstreamError(f"{url} was not listed yet")
    return local


def _fetched(
    repository: Repository, urls: Sequence[MetadataUrl], deadline: Deadline, judge: Judge
) -> Commit:
    """Fetch the newest commit from the first URL that responds; `judge` may refuse it.

    Raises the first `UpstreamError` if none responds.
    """
    failures: list[UpstreamError] = []
    for url in urls:
        try:
            return repository.fetch(url, deadline, judge=judge)
        except UpstreamError as error:
            failures.append(error)
    raise failures[0]


def _chosen(mirror: Mirror, commit: Commit, files: Sequence[File]) -> File | None:
    """Return a small file, of the payload if possible; None if all are hardlinks or volatile.

    A commit made meanwhile may change the indices.
    """
    order = publish_order(mirror.config, commit)
    small = [each for each in files if each.size <= _BYTES_MAX]
    small.sort(key=lambda file: (file.mtime, file.path), reverse=True)
    suits = (each for each in small if each.link is None and not order.is_volatile(each.path))
    judged = list(islice(suits, _JUDGED))
    payload = (file for file in judged if order.stage_of(file.path) == PAYLOAD)
    return next(chain(payload, judged), None)


def compare_sample(url: ContentUrl, commit: Sample, options: TransferOptions) -> Finding:
    """Fetch the sample's file from `url`, and compare it with the metadata in `commit`.

    Takes about two timeouts at most; raises the errors of `fetch`.  Writes into a temporary folder.
    """
    if commit.file is None:
        return ok(f"{url}: accepts connections; the newest commit has no small file to compare")
    bounded = replace(options, deadline=Deadline.after(2 * options.timeout))
    with (
        tempfile.TemporaryDirectory(prefix=_FOLDER) as folder,
        Staging(Path(folder, os.fsdecode(STAGING))) as staging,
    ):
        outcome = fetch([commit.file], [url], Path(folder), staging, bounded, Listener())
    name, serial = show(commit.file.path), f"serial {commit.serial}"
    if outcome.complete:
        return ok(f"{url}: accepts connections, and has {name} of {serial}")
    if outcome.refused:
        return fail(f"{url}: {name}: {outcome.refused[0].reason}", _FIX, ExitCode.PARTIAL)
    if outcome.late:
        slow = "nothing, if it is only slow: a sync waits longer"
        return fail(f"{url}: {name} did not arrive in time", slow, ExitCode.TIMEOUT)
    if outcome.missing:
        return fail(f"{url}: {name} of {serial} is missing", _FIX, ExitCode.PARTIAL)
    wrong = f"{url}: {name} differs from {serial} (size, time or content)"
    return fail(wrong, _FIX, ExitCode.MISMATCH)
