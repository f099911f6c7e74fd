"""The content of a plan's files: from local files where possible, else from the upstream.

Rule: a `ContentSource` puts verified files into the staging area and changes nothing else; the
`Outcome` lists each file that it could not get.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple, Protocol

from huai_client.config.mirror import Mirror
from huai_client.diff.files import chosen, digests, joined, paths, sizes, within, without
from huai_client.metadata.commit import Commit
from huai_client.metadata.upstream import Upstream
from huai_client.plan.operations import PAYLOAD, Plan
from huai_client.plan.prepared import PreparedPlan
from huai_client.plan.protect import Protection
from huai_client.staging import Staging
from huai_client.transfer.fetch import Outcome, fetch
from huai_client.transfer.listener import Listener
from huai_client.transfer.local import LocalContent, Reused, ReusePolicy
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.sources import fastest, to_sample
from huai_client.transfer.urls import (
    ContentUrl,
    mirror_urls,
    own_urls,
    stated_url,
    upstream_urls,
)
from huai_client.tree import STAGING, Tree
from huai_client.tree.destination import DIRECTORY_BYTES, NoSpaceError, bytes_on_disk, check_space
from huai_program.durations import seconds
from huai_program.urls import login_of
from huai_schema.codec.publish_rules import STAGES
from huai_schema.entries import File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import RelPath, show

_SIZE_MAX = (1 << 63) - 1
_SAMPLED = 1000
"""Files among which a large one is selected for a sample."""
_CLOCK_STEP = 1
"""Seconds; recorded times are whole seconds."""


class UndigestedError(HuaiError):
    """A file without a digest, from an upstream whose content must be proved."""

    exit_code = ExitCode.UNSIGNED


class StagedContent(NamedTuple):
    """The result of staging the content of a plan."""

    outcome: Outcome
    reused: Reused


class ContentSource(Protocol):
    """Stages the content of a plan."""

    def check(self, prepared: PreparedPlan, tree: Tree) -> None:
        """Raise an error if the content cannot be staged; called before the first change."""

    def stage(
        self, prepared: PreparedPlan, tree: Tree, staging: Staging, listener: Listener, synced: int
    ) -> StagedContent:
        """Stage the content of all files; those that cannot be had are in the outcome, not raised.

        `synced`: time of the last successful sync (epoch, seconds).
        """


class UpstreamContent:
    """Content from local files where possible, else from the upstream."""

    def __init__(self, mirror: Mirror, upstream: Upstream) -> None:
        """Take the settings of a module; raises `ContentUrlError` for a malformed content URL."""
        module = mirror.config
        self._own_urls = own_urls(module.ranked_urls)
        self._offered: dict[str, list[ContentUrl]] = {}
        """By the id of a commit."""
        self._hardlink = module.duplicates == "hardlink"
        self._trusts = module.reuse_check == "stat"
        keeps_old = seconds(module.trash) > 0
        self._in_place = Protection(() if keeps_old else module.in_place)
        self._proves = bool(module.keys or module.signers) and module.undigested == "refuse"
        self._mirrors_used = module.mirrors
        self._module_name = mirror.upstream_name
        self._attested: dict[str, list[str]] = {}
        """The URLs of mirrors, by the id of a commit."""
        self._upstream = upstream
        self._options = replace(
            TransferOptions.of(mirror), deadline=upstream.deadline, hosts=upstream.hosts
        )

    def check(self, prepared: PreparedPlan, tree: Tree) -> None:
        """Raise an error if the content cannot be staged.

        `ContentUrlError` if no content URL may be used, `NoSpaceError` if the disk is too full,
        `UndigestedError` if keys are configured and a file has no digest to prove it.
        """
        files, reuses = prepared.plan.fetches, prepared.plan.reuses
        if self._proves:
            _refuse_undigested(files, prepared.volatile)
        if any(path not in reuses for path in paths(files)):
            self.urls(prepared.commit)
        needed = _needed_bytes_of_names(prepared.plan, tree)
        if tree.stat(STAGING) is None:  # else some of the files may be there already
            needed = chain(needed, _needed_bytes(prepared, tree, self._may_patch(prepared.plan)))
        check_space(tree.dest, needed)

    def stage(
        self, prepared: PreparedPlan, tree: Tree, staging: Staging, listener: Listener, synced: int
    ) -> StagedContent:
        """Link, clone or copy the content of local files, and transfer the rest.

        Files that cannot be had are in the outcome, not raised.  Drops what is staged of other
        files.  `synced`: time of the last successful sync (epoch, seconds); a local file that was
        changed later is read and compared.  Raises what `fetch` does, `ContentUrlError` without a
        URL, and `StorageError` for a full disk.
        """
        plan, volatile = prepared.plan, prepared.volatile
        files = plan.fetches
        if volatile:
            files = joined(without(files, volatile), within(files, volatile))
        staging.prune(files)
        staging.recover(files)
        snapshot = prepared.commit.snapshot
        options = replace(self._options, volatile=volatile, snapshot=snapshot)
        until = (synced + _CLOCK_STEP) * 10**9
        policy = ReusePolicy(until, self._hardlink, options.deadline)
        with LocalContent(tree, staging, policy) as local:
            local_files = local.stage_local(files, plan.reuses)
            former = prepared.former if self._trusts else None
            large = staging.absent(_large(local_files.absent, prepared))
            reused, received = Reused(), 0
            if large:
                from huai_client.transfer.large.files import Means, update

                urls = self._urls_of_blocks(prepared.commit)
                means = Means(self._upstream, urls, options, policy, former, self._may_patch(plan))
                reused, received = update(large, means, tree, staging, listener)
            outcome = Outcome(local_files.ready, [], [], received)
            for needed_files in (local_files.absent, local_files.twins):
                if needed_files is local_files.twins:  # the files that they equal are ready by now
                    local.copy_twins(needed_files, files, plan.reuses)
                absent = _still_absent(needed_files, files, tree.dest, staging)
                parts = (
                    self._assign_urls(needed_files, prepared) if absent else [(needed_files, [])]
                )
                for part, urls in parts:
                    outcome += fetch(part, urls, tree.dest, staging, options, listener)
            return StagedContent(outcome, local.reused().plus(reused))

    def _may_patch(self, plan: Plan) -> Callable[[RelPath], bool]:
        """Return a test for files that may be changed in place: those of `in_place`, if payload.

        Except sources of copies.  Indices and pointers are fetched while they are written.
        """
        if not self._in_place:
            return lambda _: False
        excluded = {reuse.source for reuse in plan.reuses.values() if reuse.twin}
        for stage in plan.stages:
            if stage.name != STAGES[PAYLOAD]:
                excluded.update(paths(stage.fetches))
        covers = partial(self._in_place.covers, directory=False)
        return lambda path: path not in excluded and covers(path)

    def urls(self, commit: Commit) -> list[ContentUrl]:
        """Return the content URLs of client.toml, else the upstream's, found once for each commit.

        Raises `ContentUrlError` if none may be used.
        """
        if self._own_urls:
            return self._own_urls
        if commit.id not in self._offered:
            timeout = self._options.timeout
            self._offered[commit.id] = offered_urls(commit.content_urls, self._upstream, timeout)
        return self._offered[commit.id]

    def _mirrors(self, commit: Commit) -> list[ContentUrl]:
        """Return at most six mirrors, the fastest first; attested ones go before other URLs.

        Empty if `mirrors` is off, or the upstream names no other URLs.
        """
        if self._mirrors_used == "off":
            return []
        is_attested = self._mirrors_used == "attested"
        texts = self._attested_urls(commit) if is_attested else commit.descriptor.mirrors
        first = is_attested and not self._own_urls
        mirrors = mirror_urls(texts, self.urls(commit), first=first)
        return fastest(mirrors, self._upstream.hosts)

    def _attested_urls(self, commit: Commit) -> Sequence[str]:
        """Return the URLs of attested mirrors, requested once for each commit."""
        if commit.id not in self._attested:
            from huai_client.metadata.attested_mirrors import attested_urls  # loads libcurl

            self._attested[commit.id] = attested_urls(
                self._upstream.metadata.urls,
                self._module_name,
                commit.info.serial,
                self._upstream.deadline,
            )
        return self._attested[commit.id]

    def _sample(self, mirrors: Sequence[ContentUrl], files: Sequence[File]) -> None:
        """Measure at most three of `mirrors` of unknown speed, if there are `files` to try."""
        unknown = to_sample(mirrors, self._upstream.hosts)
        if unknown and files:
            from huai_client.transfer.http.probe import sample  # loads libcurl

            sample(unknown, max(files[:_SAMPLED], key=lambda file: file.size), self._options)

    def _urls_of_blocks(self, commit: Commit) -> list[ContentUrl]:
        """Return content URLs and mirrors: both may send blocks, as blocks are proved.

        All have one priority, unless client.toml names content URLs or `mirrors` is `attested`.
        """
        urls, mirrors = self.urls(commit), self._mirrors(commit)
        if self._own_urls or self._mirrors_used == "attested":
            return urls + mirrors
        return urls + [url._replace(priority=urls[0].priority) for url in mirrors]

    def _assign_urls(
        self, files: Sequence[File], prepared: PreparedPlan
    ) -> list[tuple[Sequence[File], list[ContentUrl]]]:
        """Return the URLs for parts of `files`, with mirrors only for files that a digest proves.

        Samples the speed of mirrors that were never used.
        """
        urls, mirrors = self.urls(prepared.commit), self._mirrors(prepared.commit)
        if not mirrors:
            return [(files, urls)]
        pairs = zip(paths(files), digests(files), strict=True)
        doubtful = prepared.volatile.union(path for path, digest in pairs if digest is None)
        proved, rest = without(files, doubtful), within(files, doubtful)
        self._sample(mirrors, proved)
        mirrors = self._mirrors(prepared.commit)
        return [(part, where) for part, where in ((proved, urls + mirrors), (rest, urls)) if part]


def offered_urls(
    content_urls: Sequence[str], upstream: Upstream, timeout: float
) -> list[ContentUrl]:
    """Return the `content_urls` of a commit; if it names none, that of the metadata's server.

    Raises `ContentUrlError` if none may be used, `TimeUpError` at the deadline.  `timeout` in
    seconds.
    """
    metadata_urls = [each.url for each in upstream.metadata.urls]
    if not content_urls and not any(map(login_of, metadata_urls)):
        from huai_client.metadata.content_link import find_content_url  # loads libcurl

        text = find_content_url(upstream.metadata, timeout=timeout, deadline=upstream.deadline)
        if url := stated_url(text, metadata_urls):
            return [url]
    return upstream_urls(content_urls)


def _refuse_undigested(files: Sequence[File], volatile: Container[RelPath]) -> None:
    """Raise `UndigestedError` for content without a digest, that of volatile files aside."""
    for path, size, digest in zip(paths(files), sizes(files), digests(files), strict=True):
        if digest is None and size and path not in volatile:
            raise UndigestedError(
                f"{show(path)}: has no digest, so the signature does not prove it",
                hint='undigested = "allow" in client.toml accepts it without a proof',
            )


def _needed_bytes_of_names(plan: Plan, tree: Tree) -> Iterator[int]:
    """Yield the bytes of each new directory and symlink; 0 for a symlink, which needs an inode."""
    yield from repeat(DIRECTORY_BYTES, len(plan.make))
    for stage in plan.stages:
        yield from (0 for symlink in stage.symlinks if tree.stat(symlink.path) is None)


def _needed_bytes(
    prepared: PreparedPlan, tree: Tree, may_patch: Callable[[RelPath], bool]
) -> Iterator[int]:
    """Yield the bytes that each file of the plan may need, except those that get an old inode."""
    files, reuses = prepared.plan.fetches, prepared.plan.reuses.items()
    # Files that take over an existing inode need no space.
    free = {path for path, reuse in reuses if reuse.most_links}
    smallest = prepared.commit.descriptor.blocks or _SIZE_MAX
    if not free and max(sizes(files), default=0) < smallest:
        yield from sizes(files)  # without a look at each path
        return
    for path, size in zip(paths(files), sizes(files), strict=True):
        older = tree.stat(path) if size >= smallest else None
        if path in free:
            continue
        needed = size
        if older is not None and S_ISREG(older.st_mode):
            # Holes of the older version usually are holes of the new one.
            patched = 0 if may_patch(path) else bytes_on_disk(older)
            needed = min(size, patched + max(0, size - older.st_size))
        yield needed


def _large(files: Sequence[File], prepared: PreparedPlan) -> Sequence[File]:
    """Return the `files` that are large enough for a block index, without volatile ones."""
    smallest, volatile = prepared.commit.descriptor.blocks, prepared.volatile
    if not smallest:
        return []
    positions = [position for position, size in enumerate(sizes(files)) if size >= smallest]
    large = chosen(files, positions) if positions else []
    return [file for file in large if file.path not in volatile]


def _still_absent(
    candidates: Sequence[File], files: Sequence[File], dest: Path, staging: Staging
) -> Sequence[File]:
    """Return the `candidates` that have to be transferred.

    Deletes the partials of files that are not in `files`, those of the whole plan.  If the disk is
    too full, deletes all partials: they only save transfer.  Raises `NoSpaceError` if that is not
    enough.
    """
    absent = staging.absent(candidates)
    if not absent:
        return []
    with staging.exclusive():
        staging.drop_partials(files)
        try:
            check_space(dest, sizes(absent))
        except NoSpaceError:
            staging.drop_partials()
            check_space(dest, sizes(absent))
    return absent
