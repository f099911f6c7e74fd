"""The staging area as the transfer and the executor see it.

Composes the folders; decides nothing about content (`content`) or trust (`journal`).
May be used by several threads as long as each stream is used by one at a time.
"""

import errno
import os
import stat
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Self

from huai_client.transfer.staging.content import Arrival, matches_metadata, may_stand_for
from huai_client.transfer.staging.partials import Partials, append_rest, intended_path
from huai_client.transfer.staging.ready_store import ReadyStore, boot_id, key_of
from huai_client.transfer.staging.root import StagingError, locked_file, open_root
from huai_client.tree import handles
from huai_schema.entries import File
from huai_schema.paths import RelPath, basename, join, parent

LOCK_PATIENCE = 30.0
_MAKING = b"copying"
_NOT_THERE = {errno.ENOENT}
_NO_FILE = {errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EACCES}


class Staging:
    """`root` is DEST/.~tmp~/huai; made 0700, never through a symlink below DEST."""

    def __init__(self, root: Path, *, boot: bytes | None = None) -> None:
        """Opens the area.  `boot` names this boot of the machine (default: ask the kernel)."""
        self.root = root
        self._root = open_root(root)
        try:
            self._open(boot_id() if boot is None else boot)
        except OSError as error:
            os.close(self._root)
            raise StagingError(
                f"{root}: {error.strerror}", hint="check that the disk can be written"
            ) from error

    def _open(self, boot: bytes) -> None:
        self._boot = boot
        self._ready = ReadyStore(self._root, boot)
        self._partials = Partials(self._root)
        self._incoming = handles.own_directory(self._root, b"incoming")
        self._placed: dict[int, dict[bytes, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the handles back; what is staged stays for the next run."""
        if self._root >= 0:
            self._close_folders()
            os.close(self._root)
            self._root = -1

    def _close_folders(self) -> None:
        self._ready.close()
        self._partials.close()
        os.close(self._incoming)

    # ------------------------------------------------------------ verified content

    def ready(self, file: File) -> bool:
        """Whether the content of `file` is here, verified by this run or an earlier one."""
        return self._ready.has(file)

    def locate(self, file: File) -> tuple[int, bytes]:
        """Where the content of a ready file lies: a directory handle (until `close`) and a name."""
        return self._ready.handle, os.fsencode(key_of(file))

    def prune(self, keep: Container[str]) -> None:
        """Drop ready content whose key (`key_of`) is not in `keep`, or that a tree shares.

        A file of the tree that became ready as a link is linked again, if that is still right.
        """
        self._ready.prune(keep)

    def link(self, file: File, handle: int) -> None:
        """Take the very file that `handle` is of, whose content is known to be that of `file`.

        Raises `OSError` where that is not possible.
        """
        self._ready.link(file, handle)

    @contextmanager
    def making(self, file: File) -> Iterator[int]:
        """A handle to write the content of `file` to; ready when the block ends well."""
        with suppress(FileNotFoundError):
            os.unlink(_MAKING, dir_fd=self._root)  # a run was killed here
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        target = os.open(_MAKING, flags, 0o600, dir_fd=self._root)
        try:
            yield target
            os.utime(target, ns=(file.mtime, file.mtime))
            self._ready.enter(file, self._root, _MAKING)
        except BaseException:
            with suppress(OSError):  # what went wrong first is what to tell
                os.unlink(_MAKING, dir_fd=self._root)
            raise
        finally:
            os.close(target)

    def clear(self) -> None:
        """Drop everything; the area itself stays and can be used on."""
        self._close_folders()
        for name in handles.list_names(self._root):
            handles.remove_all(self._root, name)
        self._open(self._boot)

    def remove(self) -> None:
        """Drop everything, the area's own directories too, and close it."""
        self._close_folders()
        for name in handles.list_names(self._root):
            handles.remove_all(self._root, name)
        os.close(self._root)
        self._root = -1
        with suppress(OSError):  # something else lives beside it: not ours to remove
            self.root.rmdir()
            self.root.parent.rmdir()

    # ------------------------------------------------------------ one run of rsync

    def exclusive(self, patience: float = LOCK_PATIENCE) -> AbstractContextManager[int]:
        """Hold the area; the handle is for rsync to inherit, so that an orphan holds it too."""
        return locked_file(self._root, b"lock", patience)

    def open_incoming(self, stream: int) -> int:
        """A handle of the folder that `stream`'s rsync writes to, made if absent.

        The caller closes it.
        """
        return handles.own_directory(self._incoming, b"%d" % stream)

    def prepare(self, stream: int, files: Iterable[File]) -> None:
        """Lay what earlier runs left of `files` where rsync takes it as the basis."""
        placed: dict[bytes, int] = {}
        self._placed[stream] = placed
        with handles.opened(self._incoming, b"%d" % stream, make=True) as top:
            for file in files:
                if file.path not in self._partials:
                    continue
                with handles.opened(top, parent(file.path), make=True) as folder:
                    name = basename(file.path)
                    inode = self._partials.place(file.path, folder, name)
                    if inode is not None:
                        placed[file.path] = inode
                        self._add_present(folder, name, file)

    def _add_present(self, folder: int, name: bytes, file: File) -> None:
        """A partial hides the present file of DEST from rsync: give it that file's end."""
        with suppress(OSError):  # nothing there, or no room: the transfer only costs more
            if os.stat(name, dir_fd=folder, follow_symlinks=False).st_size < file.size:
                dest = os.open("../..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._root)
                try:
                    with handles.opened(dest, parent(file.path)) as present:
                        append_rest(folder, name, present, name)
                finally:
                    os.close(dest)

    def may_compare(self, files: Iterable[File]) -> bool:
        """Whether no symlink stands above any of `files` in the tree: what rsync looks through.

        It looks later, and by path; this keeps what the metadata themselves can bring about from
        leading it out of the tree.
        """
        dest = os.open("../..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._root)
        try:
            return all(_is_plain(dest, path) for path in {parent(file.path) for file in files})
        finally:
            os.close(dest)

    def accept(self, file: File, stream: int, *, cut: bool = False) -> Arrival:
        """Verify what arrived for `file`; if it fits, it is ready from now on.

        `cut`: rsync did not come to its end.  Raises `OSError` if the disk fails.
        """
        place = parent(join(b"%d" % stream, file.path))
        name = basename(file.path)
        try:
            with handles.opened(self._incoming, place) as folder:
                inode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino
                if inode == self._placed.get(stream, {}).get(file.path):
                    return Arrival.MISSING  # still the basis that `prepare` laid there
                if not matches_metadata(folder, name, file, cut=cut):
                    return Arrival.MISMATCH
                self._ready.enter(file, folder, name)
        except OSError as error:
            if error.errno in _NOT_THERE:
                return Arrival.MISSING
            if error.errno in _NO_FILE:
                return Arrival.MISMATCH
            raise
        return Arrival.ARRIVED

    def accept_newer(self, file: File, stream: int) -> File | None:
        """Take what arrived for a volatile `file` as it is; the entry under which it is ready.

        None: it is no regular file, larger than `VOLATILE_BYTES`, older than `file`, or nothing
        arrived.  Only after an rsync that came to its end: nothing else says that it is whole.
        """
        name = basename(file.path)
        try:
            with handles.opened(self._incoming, parent(join(b"%d" % stream, file.path))) as folder:
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if found.st_ino == self._placed.get(stream, {}).get(file.path):
                    return None
                if not may_stand_for(found, file):
                    return None
                arrived = file._replace(size=found.st_size, mtime=found.st_mtime_ns, digest=None)
                self._ready.enter(arrived, folder, name)
        except OSError as error:
            if error.errno in _NOT_THERE | _NO_FILE:
                return None
            raise
        return arrived

    def salvage_partials(self, stream: int, wanted: Mapping[RelPath, File]) -> None:
        """Empty `stream`'s folder: files are kept as partials, all else goes.

        So does what is larger than the file that it is of: it is not a beginning of it.
        """
        top = b"%d" % stream
        for place, leaves in handles.directories(self._incoming, top):
            if not leaves:
                continue
            with handles.opened(self._incoming, place) as folder:
                found = [(join(place, name)[len(top) + 1 :], name) for name in leaves]
                # What a killed rsync wrote comes after the basis that it worked from.
                for path, name in sorted(
                    found, key=lambda leaf: intended_path(leaf[0], wanted) != leaf[0]
                ):
                    found_there = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    whole = wanted.get(RelPath(intended_path(path, wanted)))
                    fits_in = whole is None or found_there.st_size <= whole.size
                    if stat.S_ISREG(found_there.st_mode) and fits_in:
                        self._partials.keep(intended_path(path, wanted), folder, name)
        handles.remove_all(self._incoming, top)
        self._placed.pop(stream, None)

    def recover(self, files: Iterable[File]) -> None:
        """Take over what an interrupted run left: complete files become ready, others partials.

        `files` are not ready: what is unverified of them failed its second look.
        """
        wanted = {file.path: file for file in files}
        for name in handles.list_names(self._incoming):
            if not name.isdigit() or b"%d" % int(name) != name:
                handles.remove_all(self._incoming, name)
                continue
            stream = int(name)
            os.close(self.open_incoming(stream))
            self._accept_left(stream, wanted)
            self.salvage_partials(stream, wanted)
        for file in wanted.values():
            if unverified := self._ready.take_unverified(file):
                self._partials.keep(file.path, *unverified)

    def drop_partials(self, wanted: Iterable[RelPath] = ()) -> None:
        """Drop what earlier runs left, but for the beginnings of files that are `wanted`."""
        self._partials.prune(wanted)

    def _accept_left(self, stream: int, wanted: dict[RelPath, File]) -> None:
        top = b"%d" % stream
        for place, leaves in handles.directories(self._incoming, top):
            for name in leaves:
                file = wanted.get(RelPath(join(place, name)[len(top) + 1 :]))
                if file and (self._ready.same_boot or file.digest is not None):
                    self.accept(file, stream, cut=True)


def _is_plain(dest: int, path: bytes) -> bool:
    """Whether `path` is a directory reached through directories alone, or nothing is there."""
    try:
        with handles.opened(dest, path):
            return True
    except FileNotFoundError:
        return True
    except OSError:
        return False
