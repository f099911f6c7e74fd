"""What runs of rsync bring: a folder for each run, in which verified files stay.

Rule to keep: no rsync writes to the folder of another run, so nothing replaces a file that was
verified.  Only this process knows what was verified; after a crash the next one looks again.
"""

import errno
import os
import re
import stat
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count

from huai_client.diff.files import chosen, paths, within, without
from huai_client.staging.content import (
    Arrival,
    by_arrival,
    go_on,
    may_stand_for,
    verify,
)
from huai_client.staging.partials import Partials, append_rest, intended_path
from huai_client.staging.ready_store import ReadyStore, key_of
from huai_client.staging.root import opened_tree
from huai_client.tree import Finish, Places, handles
from huai_native import _native
from huai_schema.entries import File
from huai_schema.paths import RelPath, basename, join, parent

_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EACCES}
_OURS = 0o600
_RUN = re.compile(rb"[1-9][0-9]{0,8}|0")
"""The name of a run's folder."""
_PATH_MOST = 4095
"""Bytes of the longest path that a system call takes (PATH_MAX less its NUL)."""


class Incoming:
    """The folder `incoming` below the staging area's handle."""

    def __init__(
        self, root: int, ready: ReadyStore, partials: Partials, finish: Finish | None
    ) -> None:
        """Opens the folder, made if absent.

        `finish`: what files get owner and mode by, once they are verified; None: they do not.
        """
        self._root = root
        self._handle = handles.own_directory(root, b"incoming")
        self._ready = ready
        self._partials = partials
        self._finish = finish
        self._placed: dict[int, dict[bytes, int]] = {}
        self._arrived = _native.Arrived()
        self._unsettled = set(handles.list_names(self._handle))
        """Folders in which there may be more than verified files."""
        numbers = (int(name) for name in self._unsettled if _RUN.fullmatch(name))
        self._numbers = count(1 + max(numbers, default=0))

    def close(self) -> None:
        """Give the handle back."""
        os.close(self._handle)

    @property
    def has_more(self) -> bool:
        """Whether there may be more than verified files."""
        return bool(self._unsettled)

    # ------------------------------------------------------------ verified content

    def absent(self, files: Sequence[File]) -> Sequence[File]:
        """Those of `files` that were not verified here."""
        return chosen(files, self._unknown(files)) if self._arrived else files

    def unfinished(self, files: Sequence[File]) -> Sequence[File]:
        """Those of `files` whose owner, mode and time were not set."""
        return chosen(files, self._arrived.unfinished(files))

    def places(self, files: Sequence[File]) -> Places:
        """Where files lie that were verified here, or are ready; until `close`."""
        ready = {place: os.fsencode(key_of(files[place])) for place in self._unknown(files)}
        return Places(self._arrived, self._handle, self._ready.handle, ready)

    def keep(self, files: Sequence[File], run: int, finished: Sequence[File] = ()) -> None:
        """`files` are verified, and nothing else is in the folder of `run`.

        Owner, mode and time of those that are `finished` are set.
        """
        self._unsettled.discard(b"%d" % run)
        with handles.opened(self._handle, b"%d" % run) as folder:
            self._keep(files, run, folder)
        self._arrived.finish(finished)

    # ------------------------------------------------------------ one run of rsync

    def begin(self, files: Iterable[File]) -> int:
        """A new run, with what earlier ones left of `files` where rsync takes it as the basis."""
        run = next(self._numbers)
        self._unsettled.add(b"%d" % run)
        with handles.opened(self._handle, b"%d" % run, make=True) as top:
            placed: dict[bytes, int] = {}
            for file, folder, found in self._place(top, files):
                placed[file.path] = found.st_ino
                self._add_present(folder, basename(file.path), file)
            if placed:
                self._placed[run] = placed
        return run

    @contextmanager
    def filling(self, file: File) -> Iterator[tuple[int, int]]:
        """A new run with an empty file for `file`: its number, and the handle of that file."""
        run = self.begin(())
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with (
            handles.opened(self._handle, b"%d" % run) as top,
            handles.opened(top, parent(file.path), make=True) as folder,
        ):
            handle = os.open(basename(file.path), flags, _OURS, dir_fd=folder)
        try:
            yield run, handle
        finally:
            os.close(handle)

    def resume(self, files: Iterable[File]) -> tuple[int, dict[RelPath, int]]:
        """A new run of a writer that goes on where a file ends.

        Where earlier ones left something of `files`, it lies there as it is: the sizes, by path.
        What they left of a file without a digest goes: nothing would prove it.
        """
        files = list(files)
        for file in files if self._partials else ():
            if file.digest is None:
                self._partials.drop(file.path)
        run = next(self._numbers)
        self._unsettled.add(b"%d" % run)
        with handles.opened(self._handle, b"%d" % run, make=True) as top:
            found = self._place(top, files)
            return run, {file.path: placed.st_size for file, _, placed in found}

    def open(self, run: int) -> int:
        """A handle of the folder that the rsync of `run` writes to, made if absent.

        The caller closes it.
        """
        return handles.own_directory(self._handle, b"%d" % run)

    def has_basis(self, run: int) -> bool:
        """Whether anything that earlier runs left lies in the folder of `run`."""
        return run in self._placed

    def accept(
        self,
        files: Sequence[File],
        run: int,
        *,
        cut: bool = False,
        ended: bool = True,
        check: Callable[[], None] = go_on,
    ) -> list[Arrival]:
        """Verify what `run` brought of `files`: what fits its metadata is ready.

        `cut`: the run was interrupted.  Without `ended`, some process of it may still write to its
        folder, and what is verified is moved away.  An exception of `check` ends it.
        """
        folder = self.open(run)
        try:
            placed, finish = self._placed.get(run, {}), self._finish if ended else None
            verdicts = verify(folder, files, placed, cut=cut, finish=finish, check=check)
            arrivals = verdicts.arrivals
            here, others = by_arrival(files, arrivals)
            self._keep(here, run, folder, ended=ended)
            self._arrived.finish(verdicts.finished)
        finally:
            os.close(folder)
        if not others:
            self._unsettled.discard(b"%d" % run)
        return arrivals

    def accept_newer(self, file: File, run: int, *, ended: bool = True) -> File | None:
        """Take what arrived for a volatile `file` as it is; the entry under which it is ready.

        None: it is no regular file, larger than `VOLATILE_BYTES`, older than `file`, or nothing
        arrived.  Only after an rsync that came to its end: nothing else says that it is whole.
        """
        top = self.open(run)
        try:
            with handles.opened(top, parent(file.path)) as folder:
                found = os.stat(basename(file.path), dir_fd=folder, follow_symlinks=False)
            if found.st_ino == self._placed.get(run, {}).get(file.path):
                return None
            if not may_stand_for(found, file):
                return None
            arrived = file._replace(size=found.st_size, mtime=found.st_mtime_ns, digest=None)
            self._keep([arrived], run, top, ended=ended)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise
        finally:
            os.close(top)
        return arrived

    def salvage(self, run: int, wanted: Mapping[RelPath, File]) -> None:
        """Empty the folder of `run` but for what is verified.

        Files become partials, and all else goes; so does what is larger than the file that it is
        of: it is not a beginning of it.
        """
        top, kept = b"%d" % run, False
        for place, leaves in handles.directories(self._handle, top):
            found = [(join(place, name)[len(top) + 1 :], name) for name in leaves]
            left = [(path, name) for path, name in found if not self._arrived.has(path, run)]
            kept |= len(left) < len(found)
            if not left:
                continue
            with handles.opened(self._handle, place) as folder:
                # What a killed rsync wrote comes after the basis that it worked from.
                left.sort(key=lambda leaf: intended_path(leaf[0], wanted) != leaf[0])
                for path, name in left:
                    self._salvage(folder, name, intended_path(path, wanted), wanted)
        if not kept:
            _native.remove_all(self._handle, top)
        self._placed.pop(run, None)
        self._unsettled.discard(top)

    # ------------------------------------------------------------ what an interrupted run left

    def recover(self, files: Iterable[File]) -> None:
        """Take over what interrupted runs left: complete files become ready, others partials.

        `files` are not ready: what is unverified of them failed its second look.
        """
        if not self._unsettled and not self._ready.has_unverified:
            return
        wanted = {file.path: file for file in files}
        for name in sorted(self._unsettled):
            if not _RUN.fullmatch(name):
                _native.remove_all(self._handle, name)
                self._unsettled.discard(name)
                continue
            run = int(name)
            os.close(self.open(run))  # there may be anything by this name
            self._accept_left(run, wanted)
            self.salvage(run, wanted)
        for file in wanted.values():
            if unverified := self._ready.take_unverified(file):
                self._partials.keep(file.path, *unverified)

    # ------------------------------------------------------------ inside

    def _place(self, top: int, files: Iterable[File]) -> Iterator[tuple[File, int, os.stat_result]]:
        """Lay the partials of `files` in `top`: each with its directory, open until the next."""
        if not self._partials:
            return
        for file in files:
            if file.path in self._partials:
                with handles.opened(top, parent(file.path), make=True) as folder:
                    found = self._partials.place(file.path, folder, basename(file.path))
                    if found is not None:
                        yield file, folder, found

    def _add_present(self, folder: int, name: bytes, file: File) -> None:
        """A partial hides the present file of DEST from rsync: give it that file's end."""
        with suppress(OSError):  # nothing there, or no room: the transfer only costs more
            if os.stat(name, dir_fd=folder, follow_symlinks=False).st_size < file.size:
                with (
                    opened_tree(self._root) as dest,
                    handles.opened(dest, parent(file.path)) as present,
                ):
                    append_rest(folder, name, present, name)

    def _unknown(self, files: Sequence[File]) -> "array[int]":
        """The places of those of `files` that were not verified here."""
        unknown = array("L")
        for place, run in enumerate(self._arrived.runs(files)):
            if run is None:
                unknown.append(place)
        return unknown

    def _keep(self, files: Sequence[File], run: int, folder: int, *, ended: bool = True) -> None:
        """`files` are verified: remember where they lie, or move them where they can stay."""
        most = _PATH_MOST - len(b"%d/" % run) if ended else 0
        moved = {path for path in paths(files) if len(path) > most}
        self._arrived.add(without(files, moved), run)
        for file in within(files, moved):
            with handles.opened(folder, parent(file.path)) as place:
                self._ready.enter(file, place, basename(file.path))

    def _salvage(
        self, folder: int, name: bytes, path: bytes, wanted: Mapping[RelPath, File]
    ) -> None:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        whole = wanted.get(RelPath(path))
        if stat.S_ISREG(found.st_mode) and (whole is None or found.st_size <= whole.size):
            self._partials.keep(path, folder, name)
        else:
            os.unlink(name, dir_fd=folder)

    def _part_links(self, top: bytes, wanted: Mapping[RelPath, File]) -> None:
        """Remove names that hardlinks got here, in a directory that was about to be published."""
        for place, leaves in handles.directories(self._handle, top):
            with handles.opened(self._handle, place) as folder:
                for name in leaves:
                    if RelPath(join(place, name)[len(top) + 1 :]) not in wanted:
                        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                        if found.st_nlink > 1:
                            os.unlink(name, dir_fd=folder)

    def _accept_left(self, run: int, wanted: Mapping[RelPath, File]) -> None:
        top, trusted = b"%d" % run, self._ready.same_boot
        files: list[File] = []
        self._part_links(top, wanted)
        for place, leaves in handles.directories(self._handle, top):
            with handles.opened(self._handle, place) as folder:
                for name in leaves:
                    file = wanted.get(RelPath(join(place, name)[len(top) + 1 :]))
                    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if found.st_nlink > 1:
                        # After a crash it may be in the tree as well, and what happens to its
                        # attributes would happen there.
                        os.unlink(name, dir_fd=folder)
                    elif file and (trusted or file.digest is not None):
                        if stat.S_ISREG(found.st_mode) and not found.st_mode & stat.S_IRUSR:
                            # It got its final mode, and was about to be published.
                            os.chmod(name, _OURS, dir_fd=folder)
                        files.append(file)
        self.accept(files, run, cut=True)
