"""A tree in which nothing is lost: what is removed or replaced goes to the trash first.

Rule to keep: a file that is replaced gets its second name in the trash before the new one takes
its place, so there is no moment without it.  What is removed is renamed.  Directories are not
kept: the trash has the paths, the metadata the rest.
"""

import errno
import os
import time
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR

from huai_client.publish.trash.batches import Batch
from huai_client.tree import STAGING_NAME, PathError, Staged, Tree
from huai_schema.paths import ROOT, RelPath, ancestors, basename, join, parent

TRASH_NAME = b"huai-trash"
TRASH = RelPath(STAGING_NAME + b"/" + TRASH_NAME)
_NO_LINKS = (errno.EPERM, errno.EMLINK, errno.ENOTSUP)


class Keeping(Tree):
    """A tree with a batch of the trash, which is made when something has to go there."""

    def __init__(self, dest: Path, *, owners: bool, serial: int) -> None:
        """`serial` is that of the commit that is applied.  Raises as `Tree` does."""
        super().__init__(dest, owners=owners)
        self._serial = serial
        self._batch = ROOT
        self._made: set[RelPath] = {ROOT}

    def _unlink(self, path: RelPath) -> None:
        source = self._folders.open(parent(path))
        os.stat(basename(path), dir_fd=source, follow_symlinks=False)
        kept = self._place(path)
        source, target = self._folders.open(parent(path)), self._folders.open(parent(kept))
        os.rename(basename(path), basename(kept), src_dir_fd=source, dst_dir_fd=target)

    def _put(self, staged: Staged, path: RelPath) -> None:
        status = self.stat(path)
        if status is not None and not S_ISDIR(status.st_mode):
            self._keep(path)
        super()._put(staged, path)

    def _keep(self, path: RelPath) -> None:
        kept = self._place(path)
        source, target = self._folders.open(parent(path)), self._folders.open(parent(kept))
        names = basename(path), basename(kept)
        try:
            with suppress(FileExistsError):  # by this run: what was there first is what counts
                os.link(*names, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            raise PathError(path, "cannot be kept in the trash: no hardlink can be made") from error

    def _place(self, path: RelPath) -> RelPath:
        """Where `path` goes in the trash; the folders above are there."""
        if not self._batch:
            self._staging()
            self._batch = self._new_batch()
        kept = RelPath(self._batch + b"/" + path)
        for folder in reversed(ancestors(kept)):
            if folder not in self._made:
                self._make(folder)
                self._made.add(folder)
        return kept

    def _new_batch(self) -> RelPath:
        batch = Batch(int(time.time()), 0, self._serial)
        while self.stat(join(TRASH, batch.name)) is not None:
            batch = batch._replace(number=batch.number + 1)
        return join(TRASH, batch.name)
