"""Stages the content of wanted files from local files: selects for the engine, and counts.

A source is used without reading only if `Reuse.sure` and the time of its last change allow it; any
other one is read and compared with the digest.  Rule: a wrong source costs a transfer, and never
becomes a wrong file.  Sources are only read, and opened without following any symlink.  A file that
will be deleted gives its inode, if its owner, mode and times are the wanted ones.
"""

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias

from huai_client.diff.candidate import Reuse
from huai_client.diff.files import paths, within, without
from huai_client.run.options import NEVER, Deadline
from huai_client.staging import Staging, key_of
from huai_client.tree import StorageError, View
from huai_native import _native
from huai_schema.entries import File
from huai_schema.errors import HuaiError
from huai_schema.paths import RelPath

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_AT_ONCE = 5000
"""Files for one call of the engine."""
_THREADS = min(4, os.cpu_count() or 1)
_Area: TypeAlias = tuple[int, int, int]
_Ways: TypeAlias = tuple[bytes, tuple[bytes, int] | None]
"""For each file an index into `_METHODS` (0: not staged); then path and errno of the failure that
ended the call, or None."""


class ReuseMethod(StrEnum):
    """The way in which content was staged instead of transferred."""

    LINKED = "linked"
    """The file got another name: a hardlink."""
    CLONED = "cloned"
    """The new file shares its blocks: a reflink."""
    COPIED = "copied"


_METHODS = (None, *ReuseMethod)
"""By the engine's numbers; None for a file that was not staged."""


class Reused(NamedTuple):
    """The number of files that were not transferred."""

    linked: int = 0
    cloned: int = 0
    copied: int = 0
    bytes: int = 0
    """The bytes of all these files."""

    @property
    def files(self) -> int:
        """The number of these files."""
        return self.linked + self.cloned + self.copied

    @classmethod
    def of(cls, method: ReuseMethod, size: int) -> Self:
        """Return the figures of one file of `size` bytes."""
        return cls(**{method.value: 1, "bytes": size})

    def plus(self, other: Self) -> Self:
        """Return the sums of both."""
        return type(self)(*map(sum, zip(self, other, strict=True)))


class LocalFiles(NamedTuple):
    """Wanted files, by the source of their content."""

    ready: Sequence[File]
    """Ready in the staging area."""
    absent: Sequence[File]
    """Files that have to be transferred."""
    twins: Sequence[File]
    """Files equal to another wanted file: copied from it once that one is ready."""


class ReusePolicy(NamedTuple):
    """The rules for the use of local files."""

    until: int
    """Nanoseconds since the epoch: a file that was changed later has to be read."""
    hardlink: bool
    """True if new files of equal content may share an inode."""
    deadline: Deadline = NEVER
    """The time after which no file is staged."""
    threads: int = _THREADS
    """Threads that copy, or hash a large file."""


class LocalContent(AbstractContextManager["LocalContent"]):
    """The local sources of one run, as a context manager; counts files staged from them."""

    def __init__(self, view: View, staging: Staging, policy: ReusePolicy) -> None:
        """`view` is of the tree that `staging` belongs to."""
        self._view = view
        self._staging = staging
        self._policy = policy
        self._done: Counter[ReuseMethod | None] = Counter()
        self._bytes = 0
        self._open = ExitStack()

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def stage_local(self, files: Sequence[File], reuses: Mapping[RelPath, Reuse]) -> LocalFiles:
        """Stage the `files` that have a source in `reuses`, by path; twins are only listed.

        Each list is in their order.  A source that cannot be used only makes its file absent.
        Raises `StorageError` if the disk is full or read-only, as `copy_twins` does.
        """
        if not reuses:
            return LocalFiles([], files, [])
        trees: dict[str, list[File]] = {}
        twins = within(files, {path for path, reuse in reuses.items() if reuse.twin})
        sourced = without(within(files, reuses), {*paths(twins)})
        for file in self._staging.absent(sourced):
            trees.setdefault(reuses[file.path].tree, []).append(file)
        for tree, tree_files in trees.items():
            self._stage_from(tree, tree_files, reuses)
        ready = without(sourced, {*paths(self._staging.absent(sourced))})
        return LocalFiles(ready, without(files, {*paths(ready), *paths(twins)}), twins)

    def copy_twins(
        self, twins: Sequence[File], files: Sequence[File], reuses: Mapping[RelPath, Reuse]
    ) -> None:
        """Stage `twins` from the files that `reuses` names as their sources, those of `files`.

        A twin whose source is not staged stays absent, without an error.  Raises `StorageError`.
        """
        firsts = {reuses[file.path].source for file in twins}
        sources_by_path = {file.path: file for file in within(files, firsts)} if twins else {}
        staging = self._staging

        def stage(some: list[File], area: _Area) -> _Ways:
            """Copy or link files from their staged twins; return how each was staged."""
            sources = [sources_by_path[reuses[file.path].source] for file in some]
            pairs = zip(sources, some, strict=True)
            keys = [
                _key(file) if self._policy.hardlink and first[1:] == file[1:] else None
                for first, file in pairs
            ]
            places = sources, staging.places(sources)
            return _native.copy_twins(some, places, keys, area, self._may_continue)

        lacking = {*paths(staging.absent([*sources_by_path.values()]))}
        absent = staging.absent(twins)
        self._stage([file for file in absent if reuses[file.path].source not in lacking], stage)

    def reused(self) -> Reused:
        """Return the totals of the files that were staged so far."""
        methods = (ReuseMethod.LINKED, ReuseMethod.CLONED, ReuseMethod.COPIED)
        linked, cloned, copied = (self._done[method] for method in methods)
        return Reused(linked, cloned, copied, self._bytes)

    def _stage_from(self, tree: str, files: list[File], reuses: Mapping[RelPath, Reuse]) -> None:
        """Stage `files` from sources in `tree`; empty: the module's own.

        Stages none if `tree` cannot be opened.
        """
        view = self._view
        if tree:
            try:
                view = self._open.enter_context(View(Path(tree)))
            except HuaiError:
                return

        def source(file: File) -> tuple[bytes, int, int, bool, bytes | None]:
            """Return the source of a file as `View.stage` wants it."""
            reuse = reuses[file.path]
            may_link = reuse.most_links and not tree and reuse.source != file.path
            return *reuse[:4], _key(file) if may_link and file.link is None else None

        def stage(some: list[File], area: _Area) -> _Ways:
            sources = [source(file) for file in some]
            return view.stage((some, sources), self._policy.until, area, self._may_continue)

        self._stage(files, stage)

    def _stage(self, files: list[File], stage: Callable[[list[File], _Area], _Ways]) -> None:
        """Pass `files` to the engine in parts, and record what it staged.

        Raises `StorageError` if the disk is full or read-only.
        """
        if not files or not self._may_continue():
            return
        with _storage_errors(files[0]):
            run = self._staging.incoming.begin(())
            with self._staging.folders(run) as folders:
                for begin in range(0, len(files), _AT_ONCE):
                    some = files[begin : begin + _AT_ONCE]
                    ways, failure = stage(some, (*folders, self._policy.threads))
                    self._record(run, some, [_METHODS[way] for way in ways])
                    if failure is not None:
                        raise StorageError(RelPath(failure[0]), failure[1])
                    if not self._may_continue():
                        return

    def _record(self, run: int, files: list[File], ways: list[ReuseMethod | None]) -> None:
        """Count staged files, and keep them in the staging area."""
        self._done.update(ways)
        pairs = [*zip(files, ways, strict=True)]
        self._bytes += sum(file.size for file, way in pairs if way is not None)
        linked = [file for file, way in pairs if way is ReuseMethod.LINKED]
        copies = [file for file, way in pairs if way not in (None, ReuseMethod.LINKED)]
        self._staging.keep(run, copies, linked)

    def _may_continue(self, _read: int = 0) -> bool:
        return not self._policy.deadline.over


@contextmanager
def _storage_errors(file: File) -> Iterator[None]:
    """End the block silently at an `OSError`.

    Raises `StorageError`, with the path of `file`, if the disk is full or read-only.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise StorageError(file.path, error.errno) from error


def _key(file: File) -> bytes:
    return key_of(file).encode()
