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

from huai_client.config.load import Module
from huai_client.config.reach import Reach
from huai_client.config.tls import TlsFiles
from huai_client.diff.files import chosen, digests, joined, paths, sizes, within, without
from huai_client.metadata.commit import Commit
from huai_client.metadata.upstream import Upstream
from huai_client.plan.operations import PAYLOAD, Plan
from huai_client.plan.prepared import Prepared
from huai_client.plan.protect.protection import Protection
from huai_client.staging import Staging
from huai_client.transfer import ContentUrl, Listener, Outcome, TransferOptions, fetch
from huai_client.transfer.local import LocalContent, Reused, ReusePolicy
from huai_client.transfer.ranking import fastest, to_sample
from huai_client.transfer.urls import mirror_urls, own_urls, upstream_urls
from huai_client.tree import STAGING, Tree
from huai_client.tree.destination import DIRECTORY_BYTES, NoSpaceError, bytes_on_disk, check_space
from huai_program.durations import seconds
from huai_schema.codec.publish_rules import STAGES
from huai_schema.entries import File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import RelPath, show

_SIZE_MAX = (1 << 63) - 1
_SAMPLED = 1000
"""Files among which a large one is looked for."""
_CLOCK_STEP = 1
"""Seconds; recorded times are whole seconds."""


class UndigestedError(HuaiError):
    """A file without a digest, of an upstream whose word alone is to count."""

    exit_code = ExitCode.UNSIGNED


class StagedContent(NamedTuple):
    """The result of staging the content of a plan."""

    outcome: Outcome
    reused: Reused


class ContentSource(Protocol):
    """Stages the content of a plan."""

    def check(self, prepared: Prepared, tree: Tree) -> None:
        """Raise an error if the content cannot be staged; called before the first change."""

    def stage(
        self, prepared: Prepared, tree: Tree, staging: Staging, listener: Listener, synced: int
    ) -> StagedContent:
        """Stage the content of all files; `synced`: when the last sync succeeded (epoch)."""

    def urls(self, commit: Commit) -> list[ContentUrl]:
        """The content URLs that are asked for the content of `commit`."""


class UpstreamContent:
    """Content from local files where possible, else from the upstream."""

    def __init__(self, module: Module, lines: Upstream) -> None:
        """Raises `ContentUrlError` for a malformed content URL of `module`."""
        self._own_urls = own_urls(module.content_places)
        self._hardlink = module.duplicates == "hardlink"
        self._trusts = module.reuse_check == "stat"
        keeps_old = seconds(module.trash) > 0
        self._in_place = Protection(() if keeps_old else module.in_place)
        self._proves = bool(module.keys or module.signers) and module.undigested == "refuse"
        self._asks_mirrors = module.mirrors == "auto"
        self._lines = lines
        self._options = TransferOptions(
            streams=module.streams,
            batch_files=module.batch_files,
            batch_bytes=module.batch_size,
            bwlimit=module.bwlimit,
            timeout=module.timeout,
            extra=module.rsync_options,
            patience=seconds(module.queue_time),
            connections=module.connections,
            http_headers=Path(module.http_headers) if module.http_headers else None,
            tls=TlsFiles.of(module.tls, module.named_urls),
            reach=Reach(module.named_urls, module.allow_networks),
            deadline=lines.deadline,
            hosts=lines.hosts,
        )

    def check(self, prepared: Prepared, tree: Tree) -> None:
        """Raise `ContentUrlError` if no content URL is known, `NoSpaceError` if room lacks.

        `UndigestedError` if keys are named, and content would be believed without a proof.
        """
        files, reuses = prepared.plan.fetches, prepared.plan.reuses
        if self._proves:
            _refuse_undigested(files, prepared.volatile)
        if any(path not in reuses for path in paths(files)):
            self.urls(prepared.commit)
        room = _room_of_names(prepared.plan, tree)
        if tree.stat(STAGING) is None:  # else a part of the files may be there already
            room = chain(room, _room(prepared, tree, self._may_patch(prepared.plan)))
        check_space(tree.dest, room)

    def stage(
        self, prepared: Prepared, tree: Tree, staging: Staging, listener: Listener, synced: int
    ) -> StagedContent:
        """Link, clone or copy the content of local files, and transfer the rest."""
        plan, volatile = prepared.plan, prepared.volatile
        files = plan.fetches
        if volatile:
            files = joined(without(files, volatile), within(files, volatile))
        staging.prune(files)
        staging.recover(files)
        options = replace(self._options, volatile=volatile)
        until = (synced + _CLOCK_STEP) * 10**9
        policy = ReusePolicy(until, self._hardlink, options.deadline)
        with LocalContent(tree, staging, policy) as local:
            taken = local.take(files, plan.reuses)
            former = prepared.former if self._trusts else None
            large = staging.absent(_large(taken.absent, prepared))
            reused, received = Reused(), 0
            if large:
                from huai_client.transfer.large.update import Means, update

                urls = self._urls_of_blocks(prepared.commit)
                means = Means(self._lines, urls, options, policy, former, self._may_patch(plan))
                reused, received = update(large, means, tree, staging, listener)
            outcome = Outcome(taken.here, [], [], received)
            for wanted in (taken.absent, taken.twins):
                if wanted is taken.twins:  # what they are twins of is here by now
                    local.copy_twins(wanted, files, plan.reuses)
                absent = _still_absent(wanted, files, tree.dest, staging)
                for part, urls in self._places(wanted, prepared) if absent else [(wanted, [])]:
                    outcome += fetch(part, urls, tree.dest, staging, options, listener)
            return StagedContent(outcome, local.reused().plus(reused))

    def _may_patch(self, plan: Plan) -> Callable[[RelPath], bool]:
        """Which files may be changed where they stand: not those that others are copied from.

        Nor indices and pointers: readers ask for them while they are written, and proofs before.
        """
        if not self._in_place:
            return lambda _: False
        wanted = {reuse.source for reuse in plan.reuses.values() if reuse.twin}
        for stage in plan.stages:
            if stage.name != STAGES[PAYLOAD]:
                wanted.update(paths(stage.fetches))
        covers = partial(self._in_place.covers, directory=False)
        return lambda path: path not in wanted and covers(path)

    def urls(self, commit: Commit) -> list[ContentUrl]:
        """The content URLs of client.toml, else the upstream's; raises `ContentUrlError`."""
        return self._own_urls or upstream_urls(commit.content_urls)

    def _mirrors(self, commit: Commit) -> list[ContentUrl]:
        """The mirrors that the upstream names, if they are to be asked."""
        if not self._asks_mirrors:
            return []
        return fastest(mirror_urls(commit.descriptor, self.urls(commit)), self._lines.hosts)

    def _sample(self, mirrors: Sequence[ContentUrl], files: Sequence[File]) -> None:
        """Find out how fast those of `mirrors` are that were never asked."""
        unknown = to_sample(mirrors, self._lines.hosts)
        if unknown and files:
            from huai_client.transfer.http.sample import sample  # loads libcurl

            sample(unknown, max(files[:_SAMPLED], key=lambda file: file.size), self._options)

    def _urls_of_blocks(self, commit: Commit) -> list[ContentUrl]:
        """All of them; the upstream's own and its mirrors are of one rank, as blocks are proved."""
        urls, mirrors = self.urls(commit), self._mirrors(commit)
        if self._own_urls:
            return urls + mirrors
        return urls + [url._replace(priority=urls[0].priority) for url in mirrors]

    def _places(
        self, files: Sequence[File], prepared: Prepared
    ) -> list[tuple[Sequence[File], list[ContentUrl]]]:
        """Where to ask for which of `files`: mirrors only for what a digest proves."""
        urls, mirrors = self.urls(prepared.commit), self._mirrors(prepared.commit)
        if not mirrors:
            return [(files, urls)]
        pairs = zip(paths(files), digests(files), strict=True)
        doubtful = prepared.volatile.union(path for path, digest in pairs if digest is None)
        proved, others = without(files, doubtful), within(files, doubtful)
        self._sample(mirrors, proved)
        mirrors = self._mirrors(prepared.commit)
        return [(part, where) for part, where in ((proved, urls + mirrors), (others, urls)) if part]


def _refuse_undigested(files: Sequence[File], volatile: Container[RelPath]) -> None:
    for path, size, digest in zip(paths(files), sizes(files), digests(files), strict=True):
        if digest is None and size and path not in volatile:
            raise UndigestedError(
                f"{show(path)}: has no digest, so the signature does not prove it",
                hint='undigested = "allow" in client.toml believes whoever sends it',
            )


def _room_of_names(plan: Plan, tree: Tree) -> Iterator[int]:
    """Bytes that each new directory and symlink of the plan needs."""
    yield from repeat(DIRECTORY_BYTES, len(plan.make))
    for stage in plan.stages:
        yield from (0 for symlink in stage.symlinks if tree.stat(symlink.path) is None)


def _room(prepared: Prepared, tree: Tree, may_patch: Callable[[RelPath], bool]) -> Iterator[int]:
    """Bytes that each file of the plan may need."""
    files, free = prepared.plan.fetches, needs_no_space(prepared.plan)
    smallest = prepared.commit.descriptor.blocks or _SIZE_MAX
    for path, size in zip(paths(files), sizes(files), strict=True):
        older = tree.stat(path) if size >= smallest else None
        if path in free:
            continue
        needed = size
        if older is not None and S_ISREG(older.st_mode):
            # Holes of the older version are holes of the new one, as a rule.
            taken = 0 if may_patch(path) else bytes_on_disk(older)
            needed = min(size, taken + max(0, size - older.st_size))
        yield needed


def _large(files: Sequence[File], prepared: Prepared) -> Sequence[File]:
    """Those of `files` that have a block index."""
    smallest, volatile = prepared.commit.descriptor.blocks, prepared.volatile
    if not smallest:
        return []
    places = [place for place, size in enumerate(sizes(files)) if size >= smallest]
    return [file for file in chosen(files, places) if file.path not in volatile] if places else []


def _still_absent(
    wanted: Sequence[File], files: Sequence[File], dest: Path, staging: Staging
) -> Sequence[File]:
    """The files of `wanted` that have to be transferred; raises `NoSpaceError`.

    Partials are dropped, but for those of `files`, the files of the whole plan; if room lacks, all
    partials are: they only save transfer.
    """
    absent = staging.absent(wanted)
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


def needs_no_space(plan: Plan) -> set[RelPath]:
    """Files that need no room, because they take over an existing inode."""
    return {path for path, reuse in plan.reuses.items() if reuse.names}
