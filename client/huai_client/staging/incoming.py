"""The files that runs of rsync bring: a folder for each run, in which verified files stay.

Rule: no rsync writes to the folder of another run, so nothing replaces a verified file.  Only this
process knows which files are verified; after a crash the next one verifies them again.
"""

import errno
import os
import re
import stat
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count

from huai_client.diff.files import chosen, paths, within, without
from huai_client.staging.content import (
    Arrival,
    by_arrival,
    hash_undigested,
    may_stand_for,
    no_check,
    verify,
)
from huai_client.staging.partials import Partials, append_rest, intended_path
from huai_client.staging.ready_store import ReadyStore, key_of
from huai_client.staging.root import opened_tree
from huai_client.state.seen import SeenDigests
from huai_client.tree import Finish, Places, handles
from huai_native import _native
from huai_schema.entries import File
from huai_schema.paths import RelPath, basename, join, parent

_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EACCES}
_OURS = 0o600
_RUN = re.compile(rb"[1-9][0-9]{0,8}|0")
"""The name of a run's folder."""
_HASHED = 2_000
"""Files to hash at a time, which are values of Python then."""
_PATH_MOST = 4095
"""Bytes of the longest path that a system call accepts (PATH_MAX less its NUL)."""


class Incoming:
    """The folder `incoming` of the staging area: what runs of a transfer receive, and verify."""

    def __init__(
        self,
        root: int,
        ready: ReadyStore,
        partials: Partials,
        finish: Finish | None,
        seen_digests: SeenDigests | None,
    ) -> None:
        """Open the folder in the area's handle `root`, made if absent.

        `finish` sets owner and mode of files once they are verified, if given.  `seen_digests` gets
        the digests of verified files that state none.
        """
        self._root = root
        self._handle = handles.own_directory(root, b"incoming")
        self._ready = ready
        self._partials = partials
        self._finish = finish
        self._seen_digests = seen_digests
        self._placed: dict[int, dict[bytes, int]] = {}
        self._arrived = _native.Arrived()
        self._unsettled = set(handles.list_names(self._handle))
        """Folders in which there may be other files than verified ones."""
        numbers = (int(name) for name in self._unsettled if _RUN.fullmatch(name))
        self._numbers = count(1 + max(numbers, default=0))

    def close(self) -> None:
        """Close the handle."""
        os.close(self._handle)

    @property
    def has_more(self) -> bool:
        """True if there may be other files than verified ones."""
        return bool(self._unsettled)

    def absent(self, files: Sequence[File]) -> Sequence[File]:
        """Return the `files` that were not verified here."""
        return chosen(files, self._unverified(files)) if self._arrived else files

    def unfinished(self, files: Sequence[File]) -> Sequence[File]:
        """Return the `files` whose owner, mode and time were not set."""
        return chosen(files, self._arrived.unfinished(files))

    def places(self, files: Sequence[File]) -> Places:
        """Return the places of files that were verified here or are ready; valid until `close`."""
        keys = {each: os.fsencode(key_of(files[each])) for each in self._unverified(files)}
        return Places(self._arrived, self._handle, self._ready.handle, keys)

    def keep(self, files: Sequence[File], run: int, finished: Sequence[File] = ()) -> None:
        """Record that `files` are verified, and nothing else is in the folder of `run`.

        Owner, mode and time of those that are `finished` are set.
        """
        self._unsettled.discard(b"%d" % run)
        with handles.opened(self._handle, b"%d" % run) as folder:
            self._record(files, run, folder)
        self._arrived.finish(finished)

    def begin(self, files: Iterable[File]) -> int:
        """Start a run of rsync, with partials of `files` as bases; return the run's number."""
        run = next(self._numbers)
        self._unsettled.add(b"%d" % run)
        with handles.opened(self._handle, b"%d" % run, make=True) as top:
            placed: dict[bytes, int] = {}
            for file, folder, status in self._place(top, files):
                placed[file.path] = status.st_ino
                self._add_present(folder, basename(file.path), file)
            if placed:
                self._placed[run] = placed
        return run

    @contextmanager
    def filling(self, file: File) -> Iterator[tuple[int, int]]:
        """Start a run with an empty file for `file`; yield its number and the file's handle."""
        run = self.begin(())
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with (
            handles.opened(self._handle, b"%d" % run) as top,
            handles.opened(top, parent(file.path), make=True) as folder,
        ):
            handle = os.open(basename(file.path), flags, _OURS, dir_fd=folder)
        with handles.closing(handle):
            yield run, handle

    def resume(self, files: Iterable[File]) -> tuple[int, dict[RelPath, int]]:
        """Start a run of a writer that appends to partial files.

        The partials of `files` are put there unchanged: returns their sizes, by path.
        A partial of a file without a digest is dropped: nothing would prove it.
        """
        files = list(files)
        for file in files if self._partials else ():
            if file.digest is None:
                self._partials.drop(file.path)
        run = next(self._numbers)
        self._unsettled.add(b"%d" % run)
        with handles.opened(self._handle, b"%d" % run, make=True) as top:
            partials = self._place(top, files)
            return run, {file.path: status.st_size for file, _, status in partials}

    def opened(self, run: int) -> AbstractContextManager[int]:
        """Hold a handle of the folder that the rsync of `run` writes to, made if absent."""
        return handles.closing(handles.own_directory(self._handle, b"%d" % run))

    def has_basis(self, run: int) -> bool:
        """Return True if the folder of `run` has a partial of an earlier run."""
        return run in self._placed

    def accept(
        self,
        files: Sequence[File],
        run: int,
        *,
        cut: bool = False,
        ended: bool = True,
        check: Callable[[], None] = no_check,
    ) -> list[Arrival]:
        """Verify the `files` that `run` brought: those that match their metadata become ready.

        Returns a result for each, in order.  `cut`: the run was interrupted.  Without `ended`, a
        process of it may still write to its folder, and verified files are moved away.  `check` is
        called now and then, and may raise to end the verification.
        """
        with self.opened(run) as folder:
            placed, finish = self._placed.get(run, {}), self._finish if ended else None
            verdicts = verify(folder, files, placed, cut=cut, finish=finish, check=check)
            arrivals = verdicts.arrivals
            verified, rest = by_arrival(files, arrivals)
            self._record(verified, run, folder, ended=ended)
            self._arrived.finish(verdicts.finished)
        if not rest:
            self._unsettled.discard(b"%d" % run)
        return arrivals

    def accept_newer(self, file: File, run: int, *, ended: bool = True) -> File | None:
        """Accept the arrived version of a volatile `file`; return its entry.

        None if it is not a regular file, larger than `VOLATILE_BYTES`, older than `file`, or
        missing.  Only after an rsync that ended normally: nothing else proves that it is complete.
        """
        try:
            with self.opened(run) as top:
                with handles.opened(top, parent(file.path)) as folder:
                    status = os.stat(basename(file.path), dir_fd=folder, follow_symlinks=False)
                is_placed = status.st_ino == self._placed.get(run, {}).get(file.path)
                if is_placed or not may_stand_for(status, file):
                    return None
                arrived = file._replace(size=status.st_size, mtime=status.st_mtime_ns, digest=None)
                self._record([arrived], run, top, ended=ended)
                return arrived
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise

    def salvage(self, run: int, files: Mapping[RelPath, File]) -> None:
        """Empty the folder of `run`, except for verified files.

        Other files become partials of their paths.  Anything but a regular file is deleted, and a
        file larger than its entry in `files`: that is not its beginning.
        """
        top, has_verified = b"%d" % run, False
        for folder_path, leaves in handles.directories(self._handle, top):
            named_leaves = [(join(folder_path, name)[len(top) + 1 :], name) for name in leaves]
            left = [(path, name) for path, name in named_leaves if not self._arrived.has(path, run)]
            has_verified |= len(left) < len(named_leaves)
            if not left:
                continue
            with handles.opened(self._handle, folder_path) as folder:
                # The output of a killed rsync comes after the basis that it was made from.
                left.sort(key=lambda leaf: intended_path(leaf[0], files) != leaf[0])
                for path, name in left:
                    self._salvage(folder, name, intended_path(path, files), files)
        if not has_verified:
            _native.remove_all(self._handle, top)
        self._placed.pop(run, None)
        self._unsettled.discard(top)

    def recover(self, files: Iterable[File]) -> None:
        """Take over what interrupted runs left: complete files become ready, others partials.

        `files` are not ready: their unverified content failed its verification.
        """
        if not self._unsettled and not self._ready.has_unverified:
            return
        by_path = {file.path: file for file in files}
        for name in sorted(self._unsettled):
            if not _RUN.fullmatch(name):
                _native.remove_all(self._handle, name)
                self._unsettled.discard(name)
                continue
            run = int(name)
            with self.opened(run):  # which replaces anything else of this name
                pass
            self._accept_left(run, by_path)
            self.salvage(run, by_path)
        for file in by_path.values():
            if unverified := self._ready.take_unverified(file):
                self._partials.keep(file.path, *unverified)

    def _place(self, top: int, files: Iterable[File]) -> Iterator[tuple[File, int, os.stat_result]]:
        """Put the partials of `files` into `top`: each with its directory, open until the next."""
        if not self._partials:
            return
        for file in files:
            if file.path in self._partials:
                with handles.opened(top, parent(file.path), make=True) as folder:
                    status = self._partials.place(file.path, folder, basename(file.path))
                    if status is not None:
                        yield file, folder, status

    def _add_present(self, folder: int, name: bytes, file: File) -> None:
        """Append the end of the file in the tree to its partial, `name` in the handle `folder`.

        The partial hides that file from rsync.
        """
        with suppress(OSError):  # no present file, or a full disk: the transfer only costs more
            if os.stat(name, dir_fd=folder, follow_symlinks=False).st_size < file.size:
                with (
                    opened_tree(self._root) as dest,
                    handles.opened(dest, parent(file.path)) as present,
                ):
                    append_rest(folder, name, present, name)

    def _unverified(self, files: Sequence[File]) -> "array[int]":
        """Return the positions of the files that were not verified here."""
        runs = self._arrived.runs(files)
        if None not in runs:
            return array("L")
        return array("L", (position for position, run in enumerate(runs) if run is None))

    def _record(self, files: Sequence[File], run: int, folder: int, *, ended: bool = True) -> None:
        """Record that verified files are in `folder`, that of `run`.

        Those with too long a path, and all unless the run has `ended`, are moved to `ready`.
        """
        if self._seen_digests is not None:
            for begin in range(0, len(files), _HASHED):
                some_files = files[begin : begin + _HASHED]
                self._seen_digests.replace(paths(some_files), hash_undigested(folder, some_files))
        most = _PATH_MOST - len(b"%d/" % run) if ended else 0
        if max(map(len, paths(files)), default=0) <= most:
            self._arrived.add(files, run)
            return
        moved = {path for path in paths(files) if len(path) > most}
        self._arrived.add(without(files, moved), run)
        for file in within(files, moved):
            with handles.opened(folder, parent(file.path)) as above:
                self._ready.enter(file, above, basename(file.path))

    def _salvage(
        self, folder: int, name: bytes, path: bytes, files: Mapping[RelPath, File]
    ) -> None:
        """Keep `name` in the handle `folder` as a partial of `path`, or delete it.

        Deletes anything but a regular file, and a file larger than its entry in `files`; a file
        without an entry is kept.
        """
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        file = files.get(RelPath(path))
        if stat.S_ISREG(status.st_mode) and (file is None or status.st_size <= file.size):
            self._partials.keep(path, folder, name)
        else:
            os.unlink(name, dir_fd=folder)

    def _left_in(self, run: int) -> Iterator[tuple[RelPath, int, bytes, os.stat_result]]:
        """Yield the path of each leaf in the folder of `run`, its directory, name and status."""
        top = b"%d" % run
        for folder_path, leaves in handles.directories(self._handle, top):
            with handles.opened(self._handle, folder_path) as folder:
                for name in leaves:
                    path = RelPath(join(folder_path, name)[len(top) + 1 :])
                    yield path, folder, name, os.stat(name, dir_fd=folder, follow_symlinks=False)

    def _accept_left(self, run: int, by_path: Mapping[RelPath, File]) -> None:
        """Delete what an interrupted run left with several links; verify the files of `by_path`."""
        for path, folder, name, status in self._left_in(run):
            # Linked here, in a directory that was about to be published.
            if path not in by_path and status.st_nlink > 1:
                os.unlink(name, dir_fd=folder)
        files: list[File] = []
        for path, folder, name, status in self._left_in(run):
            file = by_path.get(path)
            if status.st_nlink > 1:
                # After a crash it may be in the tree as well, and would share its attributes.
                os.unlink(name, dir_fd=folder)
            elif file and (self._ready.same_boot or file.digest is not None):
                if stat.S_ISREG(status.st_mode) and not status.st_mode & stat.S_IRUSR:
                    # It has its final mode, and was about to be published.
                    os.chmod(name, _OURS, dir_fd=folder)
                files.append(file)
        self.accept(files, run, cut=True)
