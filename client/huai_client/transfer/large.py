"""Large files by their block indices: what an older version holds is not transferred.

The indices of both versions say, without a look at either file, which blocks are the same, and
which may stand elsewhere in the older one.  Those that are the same are taken unread from the file
that stands at the path, if that is what the last sync left there; every other block is proved by
the index of the new version.  The new file is put together in the staging area.

Rule to keep: a file is ready only if each of its blocks was proved, or stands in a file that was
right before it was copied and had not changed afterwards.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from huai_client.diff.files import chosen, sizes
from huai_client.diff.selection import Selection
from huai_client.metadata.block_indices import BlockIndices
from huai_client.transfer.local import Reused, ReuseMethod, ReusePolicy
from huai_client.transfer.staging import Staging
from huai_client.tree import PathError, View
from huai_client.tree.hashing import digest_of
from huai_native._native import BlockIndex
from huai_schema.entries import File
from huai_schema.paths import RelPath


class _Older(NamedTuple):
    """An older version of a file."""

    handle: int
    found: os.stat_result
    """Before anything of it is read."""

    def is_unchanged(self) -> bool:
        """Whether it still is what it was."""
        return _state(os.fstat(self.handle)) == _state(self.found)


class LargeFiles:
    """Those of one run."""

    def __init__(
        self,
        view: View,
        former: Selection,
        staging: Staging,
        indices: BlockIndices,
        policy: ReusePolicy,
    ) -> None:
        """`former` is what the last sync left in the tree that is viewed.

        `policy` says until when a file may have been changed to be trusted.
        """
        self._view = view
        self._former = former
        self._staging = staging
        self._indices = indices
        self._policy = policy

    def update(self, files: Sequence[File], smallest: int) -> Reused:
        """Make ready what can be made of files that are here.

        `files` are not ready; those of at least `smallest` bytes have an index.
        """
        done = Reused()
        places = [place for place, size in enumerate(sizes(files)) if size >= smallest]
        for file in chosen(files, places) if places else ():
            if file.digest is not None and not self._policy.deadline.over:
                way = self._update(file, file.digest)
                if way is not None:
                    done = done.plus(Reused.of(way, file.size))
        return done

    def _update(self, file: File, digest: bytes) -> ReuseMethod | None:
        """How the file came to be ready; None: it is not."""
        with self._older(file.path) as older:
            held = None if older is None else self._index_of(older, file.path)
            if older is None or held is None:
                return None
            index = self._indices.find(file.size, digest)
            if index is None or index.unknown(held):
                return None
            return self._assemble(file, index, older, held)

    @contextmanager
    def _older(self, path: RelPath) -> Iterator[_Older | None]:
        try:
            handle = self._view.open_file(path)
        except PathError:
            yield None
            return
        try:
            yield _Older(handle, os.fstat(handle))
        finally:
            os.close(handle)

    def _index_of(self, older: _Older, path: RelPath) -> BlockIndex | None:
        """What the older version holds, if that is known without reading it."""
        known, found = self._former.entry(path), older.found
        if not isinstance(known, File) or known.digest is None:
            return None
        is_ours = (found.st_size, found.st_mtime_ns) == (known.size, known.mtime)
        if not is_ours or found.st_ctime_ns > self._policy.until:
            return None
        return self._indices.find(known.size, known.digest)

    def _assemble(
        self, file: File, index: BlockIndex, older: _Older, held: BlockIndex
    ) -> ReuseMethod | None:
        incoming = self._staging.incoming
        with incoming.filling(file) as (run, target):
            sources = (older.handle, held), None
            missing, _, is_clone = index.assemble(
                target, sources, self._policy.threads, self._goes_on
            )
            whole = not missing and (older.is_unchanged() or digest_of(target) == file.digest)
            os.utime(target, ns=(file.mtime, file.mtime))
        if not whole:
            incoming.salvage(run, {file.path: file})
            return None
        self._staging.keep(run, [file])
        return ReuseMethod.CLONED if is_clone else ReuseMethod.COPIED

    def _goes_on(self, _done: int) -> bool:
        return not self._policy.deadline.over


def _state(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns
