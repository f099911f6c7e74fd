"""One small file of the newest commit, fetched from a content URL and compared with its metadata.

It is fetched by the code of a sync, confined and verified in the same way, into a temporary folder;
metadata that are missing are fetched into another one.  Rules to keep: nothing is written below
DEST or the state root; all is limited in bytes and seconds; for one commit it is always the same
file, the one that changed last among those looked at, because a mirror that is behind lacks it.
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
from huai_client.metadata.http import MetadataUrl, UpstreamError
from huai_client.metadata.repository import Judge, Repository
from huai_client.metadata.signatures import Signatures
from huai_client.plan.build import publish_order
from huai_client.plan.operations import PAYLOAD
from huai_client.run.deadline import Deadline
from huai_client.run.options import SyncOptions
from huai_client.staging import Staging
from huai_client.state import state as states
from huai_client.transfer import ContentUrl, TransferOptions, fetch
from huai_client.transfer.listener import SilentProgress
from huai_client.tree import STAGING
from huai_schema.codec.descriptor import Descriptor
from huai_schema.entries import File
from huai_schema.errors import ExitCode
from huai_schema.paths import show

_BYTES_MAX = 64 << 10
_ENTRIES = 50_000
"""Entries of a commit that are looked at."""
_JUDGED = 100
"""Files whose stage is determined, to find payload."""
_FOLDER = "huai-doctor-"
_FIX = (
    "is it this module's tree, and up to date? name another one in content_urls; if the upstream "
    "is being updated just now, look again"
)


class Sample(NamedTuple):
    """A file of the upstream's newest commit."""

    serial: int
    descriptor: Descriptor
    file: File | None
    """The file to fetch; None: the commit has no small file."""
    large: File | None
    """The largest file, which tells how fast a web server is; None: all are empty."""
    content_urls: tuple[str, ...]
    """Where the upstream says that the content is."""


def choose_sample(mirror: Mirror, urls: Sequence[MetadataUrl], seconds: int) -> Sample:
    """Choose a file of the newest commit; fetches what is missing here, in at most `seconds`.

    Raises `UpstreamError` or `TimeUpError` if it cannot be fetched, and what a sync raises for a
    commit that it refuses.
    """
    deadline = Deadline.after(seconds)
    with tempfile.TemporaryDirectory(prefix=_FOLDER) as folder:
        repository = Repository(Path(folder, "newest.git"), timeout=seconds)
        here = newest_local(mirror)
        if here is not None:
            repository.borrow(mirror.paths.repository, here.id)
        judge = Signatures(mirror).judge
        commit = _fetched(repository, urls, deadline, judge)
        check_module_name(commit, mirror.upstream_name)
        check_totals(commit, mirror.config, here and here.info.totals, repository.packed)
        with repository.until(deadline):
            files = _looked_at(mirror, commit)
            large = max(files, key=lambda file: file.size, default=None)
            chosen = _chosen(mirror, commit, files)
            content_urls = commit.content_urls
            return Sample(commit.info.serial, commit.descriptor, chosen, large, content_urls)


def newest_local(mirror: Mirror) -> Commit | None:
    """The commit that was fetched or applied last; None: neither is in the repository.

    Raises `StateError` or `DamagedRepositoryError` for files that cannot be read.
    """
    if not mirror.paths.repository.exists():
        return None
    repository = Repository(mirror.paths.repository, make=False)
    for commit in (repository.fetched, states.load(mirror.paths.state).applied):
        if commit is not None and repository.has(commit):
            return repository.commit(commit)
    return None


def _fetched(
    repository: Repository,
    urls: Sequence[MetadataUrl],
    deadline: Deadline,
    judge: Judge,
) -> Commit:
    """The newest commit, from the first URL that answers."""
    failures: list[UpstreamError] = []
    for url in urls:
        try:
            return repository.fetch(url, deadline, judge=judge)
        except UpstreamError as error:
            failures.append(error)
    raise failures[0]


def _looked_at(mirror: Mirror, commit: Commit) -> list[File]:
    """Files among which one is chosen."""
    rules = rules_of(mirror, SyncOptions())
    entries = islice(Selection(commit.snapshot, rules).entries(), _ENTRIES)
    return [each for each in entries if isinstance(each, File) and each.size]


def _chosen(mirror: Mirror, commit: Commit, files: Sequence[File]) -> File | None:
    """A file of the payload, if there is one: a commit made meanwhile may change the indices."""
    order = publish_order(mirror.config, commit)
    small = [each for each in files if each.size <= _BYTES_MAX]
    small.sort(key=lambda file: (file.mtime, file.path), reverse=True)
    suits = (each for each in small if each.link is None and not order.is_volatile(each.path))
    judged = list(islice(suits, _JUDGED))
    payload = (file for file in judged if order.stage_of(file.path) == PAYLOAD)
    return next(chain(payload, judged), None)


def compare_sample(url: ContentUrl, commit: Sample, options: TransferOptions) -> Finding:
    """Compare the file at `url`, which accepts connections, with `commit`.

    Takes two timeouts at most; raises what `fetch` raises.
    """
    if commit.file is None:
        return ok(f"{url}: lets us in; the newest commit has no small file to compare")
    bounded = replace(options, deadline=Deadline.after(2 * options.timeout))
    with (
        tempfile.TemporaryDirectory(prefix=_FOLDER) as folder,
        Staging(Path(folder, os.fsdecode(STAGING))) as staging,
    ):
        found = fetch([commit.file], [url], Path(folder), staging, bounded, SilentProgress())
    name, says = show(commit.file.path), f"serial {commit.serial}"
    if found.complete:
        return ok(f"{url}: lets us in, and {name} is there as {says} says")
    if found.refused:
        return fail(f"{url}: {name}: {found.refused[0].reason}", _FIX, ExitCode.PARTIAL)
    if found.late:
        slow = "nothing, if it is only slow: a sync is more patient"
        return fail(f"{url}: {name} did not come in time", slow, ExitCode.TIMEOUT)
    if found.missing:
        return fail(f"{url}: has no {name}, which {says} names", _FIX, ExitCode.PARTIAL)
    wrong = f"{url}: {name} is not what {says} says (size, time or content)"
    return fail(wrong, _FIX, ExitCode.MISMATCH)
