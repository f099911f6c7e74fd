"""Stages the content of wanted files from local files.

A source is used without reading only if `Reuse.sure` and the time of its last change allow it; any
other one is read and compared with the digest.  Rule: a wrong source costs a transfer, and never
becomes a wrong file.  Sources are only read, and opened without following any symlink.  A file that
will be deleted gives its inode, if its owner, mode and times are the wanted ones.
"""

import errno
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Self

from huai_client.deadline import NEVER, Deadline, TimeUpError
from huai_client.diff.reuse.value import Reuse
from huai_client.transfer.copy import clone, copy
from huai_client.transfer.staging import Staging
from huai_client.tree import PathError, StorageError, View
from huai_client.tree.hashing import digest_of
from huai_client.tree.local_entry import LocalEntry, differences, stat_entry
from huai_schema.entries import File
from huai_schema.errors import HuaiError
from huai_schema.paths import RelPath

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


class ReuseMethod(StrEnum):
    """How content was staged instead of transferred."""

    LINKED = "linked"
    """The file got another name: a hardlink."""
    CLONED = "cloned"
    """A new file shares its blocks: a reflink."""
    COPIED = "copied"


class Reused(NamedTuple):
    """Files that were not transferred."""

    linked: int = 0
    cloned: int = 0
    copied: int = 0
    bytes: int = 0
    """Of all these files."""

    @property
    def files(self) -> int:
        """The number of these files."""
        return self.linked + self.cloned + self.copied


class Taken(NamedTuple):
    """Wanted files, by the place of their content."""

    here: list[File]
    """Ready in the staging area."""
    absent: list[File]
    """Files that have to be transferred."""
    twins: list[File]
    """Files that another wanted file equals: copied from it once that one is ready."""


class ReusePolicy(NamedTuple):
    """How local files may be used."""

    until: int
    """Nanoseconds since the epoch: a file that was changed later has to be read."""
    hardlink: bool
    """Whether new files of equal content may share an inode."""
    deadline: Deadline = NEVER
    """No file is staged after it."""


class _OtherContentError(Exception):
    """The content of the source is not the wanted one."""


class LocalContent:
    """The local sources of one run; counts the files that were staged from them."""

    def __init__(self, view: View, staging: Staging, policy: ReusePolicy) -> None:
        """`view` is of the tree that `staging` belongs to."""
        self._view = view
        self._staging = staging
        self._policy = policy
        self._done: Counter[ReuseMethod] = Counter()
        self._bytes = 0
        self._others: dict[str, View | None] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def take(self, files: Sequence[File], reuses: Mapping[RelPath, Reuse]) -> Taken:
        """Stage those of `files` that have a local source, in their order.

        Raises:
            StorageError: there is no room for a copy.
        """
        taken = Taken([], [], [])
        for file in files:
            reuse = reuses.get(file.path)
            if reuse is not None and reuse.twin:
                taken.twins.append(file)
            elif reuse is not None and self.reuse(file, reuse):
                taken.here.append(file)
            else:
                taken.absent.append(file)
        return taken

    def copy_twins(
        self, twins: Sequence[File], files: Sequence[File], reuses: Mapping[RelPath, Reuse]
    ) -> None:
        """Stage `twins` from those of `files` that are ready now; the other twins stay absent."""
        known = {file.path: file for file in files} if twins else {}
        for file in twins:
            self.duplicate(file, known[reuses[file.path].source])

    def reused(self) -> Reused:
        """The files that were staged so far."""
        linked, cloned, copied = (self._done[how] for how in ReuseMethod)
        return Reused(linked, cloned, copied, self._bytes)

    def reuse(self, file: File, reuse: Reuse) -> bool:
        """Stage `file` if its source still has the wanted content; returns whether it is ready.

        Raises:
            StorageError: there is no room for a copy.
        """
        if self._staging.ready(file):
            return True
        view = self._view_of(reuse.tree)
        if view is None or self._policy.deadline.over:
            return False
        try:
            found = stat_entry(view, reuse.source)
            if found is None or not _is(found, file.size, reuse.mtime):
                return False
            handle = view.open_file(reuse.source)
        except PathError:
            return False
        try:
            status = os.fstat(handle)
            if (status.st_dev, status.st_ino) != (found.device, found.inode):
                return False
            sure = reuse.sure and status.st_ctime_ns < self._policy.until
            link = self._may_link(file, reuse, found)
            return (sure or file.digest is not None) and self._made(
                file, handle, sure=sure, link=link
            )
        finally:
            os.close(handle)

    def duplicate(self, file: File, first: File) -> None:
        """Stage `file` with the content of `first`, if that is ready."""
        over = self._policy.deadline.over
        if over or self._staging.ready(file) or not self._staging.ready(first):
            return
        folder, name = self._staging.locate(first)
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            link = self._policy.hardlink and first._replace(path=file.path) == file
            self._made(file, handle, sure=True, link=link)
        finally:
            os.close(handle)

    def _may_link(self, file: File, reuse: Reuse, found: LocalEntry) -> bool:
        if reuse.tree or reuse.source == file.path:
            return False
        free = found.nlinks <= reuse.names
        return free and not differences(found, file, owners=self._view.owners)

    def _made(self, file: File, handle: int, *, sure: bool, link: bool) -> bool:
        """Stage the file `handle` as the content of `file`; returns whether it is ready."""
        how = self._how(file, handle, sure=sure, link=link)
        if how is None:
            return False
        self._done[how] += 1
        self._bytes += file.size
        return True

    def _how(self, file: File, handle: int, *, sure: bool, link: bool) -> ReuseMethod | None:
        """Stage it; None if the content is another one, or cannot be read."""
        try:
            if link and (sure or digest_of(handle) == file.digest):
                # Not every file system, and not every file of other users, can be linked.
                with suppress(OSError):
                    self._staging.link(file, handle)
                    return ReuseMethod.LINKED
            return self._copied(file, handle, sure=sure)
        except (_OtherContentError, TimeUpError):
            return None
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise StorageError(file.path, error.errno) from error
            return None

    def _copied(self, file: File, handle: int, *, sure: bool) -> ReuseMethod:
        before = os.fstat(handle)
        with self._staging.making(file) as target:
            if clone(handle, target):
                how, digest = ReuseMethod.CLONED, None if sure else digest_of(target)
            else:
                how, digest = ReuseMethod.COPIED, copy(handle, target, self._policy.deadline)
            if file.digest is None:
                right = _unchanged(before, os.fstat(handle))
            else:
                right = digest in (None, file.digest)
            if not right or os.fstat(target).st_size != file.size:
                raise _OtherContentError
        return how

    def _view_of(self, tree: str) -> View | None:
        if not tree:
            return self._view
        if tree not in self._others:
            try:
                self._others[tree] = self._open.enter_context(View(Path(tree)))
            except HuaiError:
                self._others[tree] = None
        return self._others[tree]


def _is(found: LocalEntry, size: int, mtime: int) -> bool:
    entry = found.entry
    return isinstance(entry, File) and (entry.size, entry.mtime) == (size, mtime)


def _unchanged(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_size, before.st_ctime_ns) == (after.st_size, after.st_ctime_ns)
