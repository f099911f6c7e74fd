"""Large files, each made from local blocks and the missing ones.

The indices of both versions show, without reading either file, which blocks are the same, and which
may be elsewhere in the older one.  The same blocks are taken unread from the file at the path, if
it is unchanged since the last sync; every other block is proved by the index of the new version.
The new file is made in the staging area.

Rule: a file is ready only if each of its blocks was proved, or is in a file that was right before
it was copied and did not change meanwhile.
"""

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from huai_client.diff.selection import Selection
from huai_client.metadata.block_indices import BlockIndexFetch
from huai_client.metadata.upstream import Upstream
from huai_client.staging import Patch, Staging
from huai_client.staging.patches import file_state
from huai_client.transfer.errors import OutOfTimeError
from huai_client.transfer.fetch import disk_errors
from huai_client.transfer.large.older import Former, Older, opened
from huai_client.transfer.large.pieces import Pieces
from huai_client.transfer.large.range_source import NewFile
from huai_client.transfer.listener import Listener
from huai_client.transfer.local import Reused, ReuseMethod, ReusePolicy
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.sources import Sources
from huai_client.transfer.urls import ContentUrl, Transport, stated_url
from huai_client.tree import View
from huai_client.tree.handles import handle_path
from huai_client.tree.hashing import digest_of
from huai_native._native import BlockIndex
from huai_program.urls import login_of
from huai_schema.entries import File
from huai_schema.paths import RelPath

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class BlockSource(NamedTuple):
    """An older version that blocks are taken from."""

    file: Older
    blocks: BlockIndex


class _Result(NamedTuple):
    """The way in which a large file was made."""

    way: ReuseMethod | None
    """None if some of it was transferred."""
    is_patch: bool
    """True if it holds only the changes of the older version."""


class Means(NamedTuple):
    """The upstream, URLs, options and local files by which large files are updated."""

    upstream: Upstream
    urls: Sequence[ContentUrl]
    options: TransferOptions
    policy: ReusePolicy
    former: Selection | None
    """The selection that the last sync left in the tree; None if no file may be trusted."""
    in_place: Callable[[RelPath], bool]
    """Tests which files may be changed in place."""


class LargeFiles:
    """The large files of one run, staged one by one.  The caller closes `pieces`."""

    def __init__(
        self, view: View, staging: Staging, means: Means, indices: BlockIndexFetch, pieces: Pieces
    ) -> None:
        """Stage files of the viewed tree, with blocks of older files and of `pieces`."""
        self._view = view
        self._staging = staging
        self._indices = indices
        self._pieces = pieces
        self._policy = means.policy
        self._in_place = means.in_place
        self._former = None
        """The tree as the last sync left it; None if no file of it may be trusted unread."""
        if means.former is not None:
            self._former = Former(means.former, indices, means.policy.until)
        self._linking_urls = _linking_urls(means)

    def update(self, files: Sequence[File]) -> Reused:
        """Stage the files that old and fetched blocks can make; return totals of reused files.

        A file counts as reused if none of its blocks was fetched.  The others stay absent, without
        an error.
        """
        done = Reused()
        for file in files:
            way = self._update(file)
            if way is not None:
                done = done.plus(Reused.of(way, file.size))
        return done

    def _update(self, file: File) -> ReuseMethod | None:
        """Stage `file` if enough of its blocks can be had; return the method, as `_make` does.

        None if it was not staged, or if blocks were fetched.
        """
        if file.digest is None or self._policy.deadline.over:
            return None
        with ExitStack() as stack:
            older_files = self._find_older(stack, file.path)
            if not older_files and not self._pieces.urls():
                return None
            index = self._indices.find(file.size, file.digest)
            if index is None:
                return None
            most = self._missing_most(file)
            older = self._nearest(older_files, file.path, index, read=most > 0)
            if (index.unknown_bytes(older.blocks) if older else file.size) > most:
                return None
            return self._make(file, index, older)

    def _missing_most(self, file: File) -> int:
        """Return how many bytes of `file` may be fetched: 0 without a URL, not all at a linked one.

        The linked URL, which the last index stated, is used from now on.
        """
        urls = self._linking_urls
        linked = stated_url(self._indices.content_url, urls) if urls else None
        if linked is not None:
            self._pieces.add(linked)
        if not self._pieces.urls():
            return 0
        return file.size if linked is None else file.size - 1

    def _find_older(self, stack: ExitStack, path: RelPath) -> list[tuple[Older, BlockIndex | None]]:
        """Return the file at `path`, with its blocks if known; else namesakes of known blocks."""
        present = stack.enter_context(opened(self._view, path))
        former = self._former
        if present is not None:
            return [(present, former and former.index_of(present))]
        older_versions: list[tuple[Older, BlockIndex | None]] = []
        for namesake in former.namesakes(path) if former else ():
            older = stack.enter_context(opened(self._view, namesake))
            if former and older and (blocks := former.index_of(older)):
                older_versions.append((older, blocks))
        return older_versions

    def _nearest(
        self,
        older_files: Sequence[tuple[Older, BlockIndex | None]],
        path: RelPath,
        index: BlockIndex,
        *,
        read: bool,
    ) -> BlockSource | None:
        """Return the version that lacks the fewest blocks; None if no version is known.

        `read`: the file at `path` may be read to find its blocks.
        """
        sources = [
            BlockSource(older, blocks)
            for older, blocks in older_files
            if blocks is not None and blocks.block_size == index.block_size
        ]
        present = next((older for older, _ in older_files if older.path == path), None)
        if not sources and read and present is not None:
            blocks = present.read(index.block_size, self._policy.threads)
            return BlockSource(present, blocks) if blocks else None
        return min(sources, key=lambda each: index.unknown_bytes(each.blocks), default=None)

    def _make(self, file: File, index: BlockIndex, older: BlockSource | None) -> ReuseMethod | None:
        """Stage `file`; return the method, or None if blocks were fetched or are missing.

        What was made of an incomplete file is kept for the next run.  Raises `OSError` on a full
        disk.
        """
        incoming = self._staging.incoming
        with incoming.filling(file) as (run, target):
            try:
                result = self._fill(NewFile(file, index, target), older)
            except OutOfTimeError:
                result = None
            except OSError as error:
                incoming.salvage(run, {file.path: file})
                if error.errno in _NO_ROOM:
                    raise
                return None
            if result:
                os.utime(target, ns=(file.mtime, file.mtime))
        if result is None:
            incoming.salvage(run, {file.path: file})
            return None
        if result.is_patch and older is not None:
            ranges = index.changed_ranges(older.blocks)
            self._staging.keep_patch(Patch(file, ranges, file_state(older.file.status)), run)
        else:
            self._staging.keep(run, [file])
        self._staging.drop_left(file)
        return result.way

    def _fill(self, new_file: NewFile, older: BlockSource | None) -> _Result | None:
        """Fill the new file; return None if it is not complete or not right."""
        blocks, source = (older.blocks, older.file.handle) if older else (None, None)
        in_place = older is not None and self._may_patch(new_file, older)
        with self._staging.left_of(new_file.file) as partial:
            missing, _, is_clone = new_file.blocks.assemble(
                new_file.handle,
                (blocks, source, partial, not in_place),
                self._policy.threads,
                lambda _: not self._policy.deadline.over,
            )
        is_patch = in_place and not is_clone
        way = None if missing else ReuseMethod.CLONED if is_clone else ReuseMethod.COPIED
        if missing and not self._pieces.fetch(new_file, missing):
            return None
        if older is not None and not is_patch and not older.file.is_unchanged:
            right = digest_of(new_file.handle) == new_file.file.digest
            return _Result(way, is_patch=False) if right else None
        return _Result(way, is_patch=is_patch)

    def _may_patch(self, new_file: NewFile, source: BlockSource) -> bool:
        """Return True if the older version may be changed in place, if it cannot be cloned."""
        file = new_file.file
        if new_file.blocks.changed_ranges(source.blocks) == [(0, file.size)]:
            return False  # no block would stay: all were written twice
        older = source.file
        one_name = older.status.st_nlink == 1 and file.link is None
        if older.path != file.path or not one_name or not self._in_place(file.path):
            return False
        return os.access(handle_path(older.handle), os.W_OK)


def update(
    files: Sequence[File], means: Means, view: View, staging: Staging, listener: Listener
) -> tuple[Reused, int]:
    """Stage what blocks can make of `files`, which have a block index and are not ready.

    Returns the files that needed no transfer, and the bytes received for others.  Raises
    `DiskFullError` or `LocalWriteError` if the disk cannot take them, `UpstreamRefusedError`
    without a URL or if all refuse.
    """
    upstream, options = means.upstream, means.options
    indices = BlockIndexFetch(
        upstream.metadata, upstream.deadline, timeout=options.timeout, on_message=listener.retried
    )
    sources = Sources(means.urls, options.hosts.health)
    with disk_errors(staging), Pieces(sources, options, listener) as pieces:
        large = LargeFiles(view, staging, means, indices, pieces)
        return large.update(files), pieces.received


def _linking_urls(means: Means) -> list[str]:
    """Return the metadata URLs that may link to content; none if other content is to be used."""
    by_rsync = all(url.transport in (Transport.DAEMON, Transport.SHELL) for url in means.urls)
    urls = [each.url for each in means.upstream.metadata.urls]
    return urls if by_rsync and not any(map(login_of, urls)) else []  # no login for content
