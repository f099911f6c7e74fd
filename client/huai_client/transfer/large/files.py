"""Large files, each put together from what is here and the blocks that are not.

The indices of both versions say, without a look at either file, which blocks are the same, and
which may stand elsewhere in the older one.  Those that are the same are taken unread from the file
that stands at the path, if that is what the last sync left there; every other block is proved by
the index of the new version.  The new file is made in the staging area.

Rule to keep: a file is ready only if each of its blocks was proved, or stands in a file that was
right before it was copied and had not changed afterwards.
"""

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from huai_client.metadata.block_indices import BlockIndices
from huai_client.staging import Patch, Staging
from huai_client.staging.patches import state_of
from huai_client.transfer.errors import OutOfTimeError
from huai_client.transfer.large.arriving import Making
from huai_client.transfer.large.older import Former, Older, opened
from huai_client.transfer.large.pieces import Pieces
from huai_client.transfer.local import Reused, ReuseMethod, ReusePolicy
from huai_client.tree import View
from huai_client.tree.handles import handle_path
from huai_client.tree.hashing import digest_of
from huai_native._native import BlockIndex, BlockPlaces
from huai_schema.entries import File
from huai_schema.paths import RelPath

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Origins(NamedTuple):
    """What is known of large files, and who has them."""

    indices: BlockIndices
    former: Former | None
    """None: no file of the tree is believed unread."""
    pieces: Pieces | None
    """None: no content URL has pieces of files."""


class Source(NamedTuple):
    """An older version that blocks are taken from."""

    file: Older
    places: BlockPlaces
    """Where the blocks of the new version stand in it."""


class _Made(NamedTuple):
    """A file that was made."""

    way: ReuseMethod | None
    """None: something of it was transferred."""
    is_patch: bool
    """It holds what changes in the older version, and nothing else."""


class LargeFiles:
    """Those of one run."""

    def __init__(
        self,
        view: View,
        staging: Staging,
        origins: Origins,
        policy: ReusePolicy,
        in_place: Callable[[RelPath], bool],
    ) -> None:
        """`in_place`: which files of the tree that is viewed may be changed where they stand."""
        self._view = view
        self._staging = staging
        self._indices, self._former, self._pieces = origins
        self._policy = policy
        self._in_place = in_place

    def update(self, files: Sequence[File]) -> Reused:
        """Make ready what can be made of `files`; which of them nothing was transferred for."""
        done = Reused()
        for file in files:
            way = self._update(file)
            if way is not None:
                done = done.plus(Reused.of(way, file.size))
        return done

    def _update(self, file: File) -> ReuseMethod | None:
        """How the file came to be ready without a transfer, if it did."""
        if file.digest is None or self._policy.deadline.over:
            return None
        has_pieces = self._pieces is not None and bool(self._pieces.urls())
        with ExitStack() as stack:
            olders = self._olders(stack, file.path)
            if not has_pieces and not any(held for _, held in olders):
                return None
            index = self._indices.find(file.size, file.digest)
            if index is None:
                return None
            older = self._nearest(olders, file.path, index, read=has_pieces)
            if not has_pieces and (older is None or older.places.unknown):
                return None
            return self._make(file, index, older)

    def _olders(self, stack: ExitStack, path: RelPath) -> list[tuple[Older, BlockIndex | None]]:
        """What stands at `path`, or else its namesakes; each with what it is known to hold."""
        here = stack.enter_context(opened(self._view, path))
        former = self._former
        if here is not None:
            return [(here, former and former.index_of(here))]
        found: list[tuple[Older, BlockIndex | None]] = []
        for each in former.namesakes(path) if former else ():
            older = stack.enter_context(opened(self._view, each))
            if former and older and (held := former.index_of(older)):
                found.append((older, held))
        return found

    def _nearest(
        self,
        olders: Sequence[tuple[Older, BlockIndex | None]],
        path: RelPath,
        index: BlockIndex,
        *,
        read: bool,
    ) -> Source | None:
        """The one that lacks least; `read`: what stands at `path` may be read."""
        known = [
            Source(older, index.places(held))
            for older, held in olders
            if held is not None and held.block_size == index.block_size
        ]
        here = next((older for older, _ in olders if older.path == path), None)
        if not known and read and here is not None:
            held = here.read(index.block_size, self._policy.threads)
            return Source(here, index.places(held)) if held else None
        return min(known, key=lambda each: each.places.unknown, default=None)

    def _make(self, file: File, index: BlockIndex, older: Source | None) -> ReuseMethod | None:
        incoming = self._staging.incoming
        with incoming.filling(file) as (run, target):
            try:
                made = self._fill(Making(file, index, target), older)
            except OutOfTimeError:
                made = None
            except OSError as error:
                incoming.salvage(run, {file.path: file})
                if error.errno in _NO_ROOM:
                    raise
                return None
            if made:
                os.utime(target, ns=(file.mtime, file.mtime))
        if made is None:
            incoming.salvage(run, {file.path: file})
            return None
        if made.is_patch and older is not None:
            ranges = older.places.changed_ranges()
            self._staging.keep_patch(Patch(file, ranges, state_of(older.file.found)), run)
        else:
            self._staging.keep(run, [file])
        self._staging.drop_left(file)
        return made.way

    def _fill(self, making: Making, older: Source | None) -> _Made | None:
        """How the file was made; None: it is not whole."""
        places = making.blocks.places(None) if older is None else older.places
        source = None if older is None else older.file.handle
        in_place = older is not None and self._may_patch(making.file, older)
        with self._staging.left_of(making.file) as partial:
            missing, _, is_clone = places.assemble(
                making.handle, (source, partial, not in_place), self._policy.threads, self._goes_on
            )
        is_patch = in_place and not is_clone
        way = None if missing else ReuseMethod.CLONED if is_clone else ReuseMethod.COPIED
        if missing and not (self._pieces is not None and self._pieces.fetch(making, missing)):
            return None
        if older is not None and not is_patch and not older.file.is_unchanged:
            right = digest_of(making.handle) == making.file.digest
            return _Made(way, is_patch=False) if right else None
        return _Made(way, is_patch=is_patch)

    def _may_patch(self, file: File, source: Source) -> bool:
        """Whether the older version may be changed where it stands, if it cannot be cloned."""
        if source.places.changed_ranges() == [(0, file.size)]:
            return False  # nothing would stay: all was written twice
        older = source.file
        one_name = older.found.st_nlink == 1 and file.link is None
        if older.path != file.path or not one_name or not self._in_place(file.path):
            return False
        return os.access(handle_path(older.handle), os.W_OK)

    def _goes_on(self, _done: int) -> bool:
        return not self._policy.deadline.over
