"""The staging area as the transfer and the executor use it.

Composes the folders; decides nothing about content (`content`) or trust (`ready_store`).
May be used by several threads as long as each run of rsync is used by one at a time.
"""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from huai_client.diff.files import chosen, paths, within, without
from huai_client.staging.incoming import Incoming
from huai_client.staging.journals import Journals
from huai_client.staging.partials import Partials
from huai_client.staging.patches import Patch, Patches
from huai_client.staging.ready_store import ReadyStore, boot_id, key_of
from huai_client.staging.root import locked_file, open_root, opened_tree, unusable
from huai_client.state.seen import SeenDigests
from huai_client.tree import Finish, Places, handles
from huai_native import _native
from huai_schema.entries import File

LOCK_PATIENCE = 30.0


class Staging(AbstractContextManager["Staging"]):
    """A staging area; `root` is DEST/.~tmp~/huai, made 0700, never through a symlink below DEST."""

    def __init__(
        self,
        root: Path,
        *,
        boot: bytes | None = None,
        finish: Finish | None = None,
        journals: Journals | None = None,
        seen_digests: SeenDigests | None = None,
    ) -> None:
        """Open the area, or raise `StagingError`.  `boot` names this boot (default: the kernel's).

        `finish`: sets owner and mode of copies as soon as they are made, and of arrivals as soon as
        they are verified; without it that is left for later.  `journals`: those of files changed in
        place; without it no file may be changed so.  `seen_digests` gets the digests of files that
        state none, as soon as they are verified.
        """
        self.root = root
        self._journals = journals
        self._seen_digests = seen_digests
        self.finish = finish
        self._root = open_root(root)
        self._write_back = WriteBack(self._root)
        try:
            self._open(boot_id() if boot is None else boot)
        except OSError as error:
            os.close(self._root)
            raise unusable(root, error) from error

    def _open(self, boot: bytes) -> None:
        """Open the folders of the area."""
        self._boot = boot
        self._ready = ReadyStore(self._root, boot)
        self._partials = Partials(self._root)
        self.incoming = Incoming(
            self._root, self._ready, self._partials, self.finish, self._seen_digests
        )
        self._patches = Patches(self._root, self._journals)
        self._folders = ExitStack()  # which closes each only once, even if a signal interrupts it
        for folder in (self._ready, self._partials, self.incoming):
            self._folders.callback(folder.close)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the handles; staged files stay for the next run."""
        if self._root >= 0:
            self._write_back.close()
            self._folders.close()
            root, self._root = self._root, -1
            os.close(root)

    def ready(self, file: File) -> bool:
        """Return True if the content of `file` is staged; an earlier run's is verified again."""
        return not self.absent([file])

    def places(self, files: Sequence[File]) -> Places:
        """Return the places of ready files; handles are valid until `close`.

        A file with a patch is changed now: its place is the file of the tree itself.  Raises
        `PathError` if another program has changed it.
        """
        for file in within(files, self._patches.paths) if self._patches else ():
            if file in self._patches:
                self._patches.apply(file, self._ready.handle, os.fsencode(key_of(file)))
                self._ready.add([file])
        return self.incoming.places(files)

    def locate(self, file: File) -> tuple[int, bytes] | None:
        """Return the place of a ready file: a directory handle, and a path below it.

        None if there is a patch for it: the new version exists nowhere yet.
        """
        if file in self._patches:
            return None
        places = self.places([file])
        (run,) = places.arrived.runs([file])
        if run is None:
            return places.finished, places.names[0]
        return places.runs, b"%d/%b" % (run, file.path)

    def absent(self, files: Sequence[File]) -> Sequence[File]:
        """Return the `files` that are not ready; content of an earlier run is verified again."""
        absent = self.incoming.absent(files)
        if self._patches:
            patched = within(absent, self._patches.paths)
            absent = without(absent, {each.path for each in patched if each in self._patches})
        if not self._ready:
            return absent
        return without(absent, {each.path for each in absent if self._ready.has(each)})

    def prune(self, files: Iterable[File]) -> None:
        """Drop ready content that belongs to none of `files`, or that a tree shares.

        A file of the tree that became ready as a link is linked again, if that is still right.
        """
        self._ready.prune(files)

    @contextmanager
    def folders(self, run: int) -> Iterator[tuple[int, int]]:
        """Yield handles of the folder for the copies of `run`, and of that for links by key."""
        with self.incoming.opened(run) as folder:
            yield folder, self._ready.handle

    def keep(
        self,
        run: int,
        copies: Sequence[File],
        linked: Iterable[File] = (),
        finished: Sequence[File] = (),
    ) -> None:
        """Record verified files: `copies` in the folder of `run`, which has no others, and links.

        The files in `linked` share their inodes with files of a tree.  Of `copies`, those in
        `finished` have their owner, mode and time already.
        """
        linked = list(linked)
        self.incoming.keep(copies, run, finished)
        if self._seen_digests is not None:
            self._seen_digests.remove(paths(linked))
        self._ready.add(linked)

    def keep_patch(self, patch: Patch, run: int) -> None:
        """Take over the patch for a file of the tree from the folder of `run`."""
        if self._seen_digests is not None:
            self._seen_digests.remove([patch.file.path])
        with self.incoming.opened(run) as folder:
            self._patches.keep(patch, folder)

    @contextmanager
    def left_of(self, file: File) -> Iterator[int | None]:
        """Yield a handle of the patch or partial of `file` from an interrupted run, or None."""
        with self._patches.left_of(file.path) as patch:
            if patch is not None:
                yield patch
                return
        with self._partials.opened(file.path) as partial:
            yield partial

    def drop_left(self, file: File) -> None:
        """Drop the partial and the patch of `file` from an interrupted run."""
        self._partials.drop(file.path)
        self._patches.drop_left_of(file.path)

    def begin_to_write(self, files: int, size: int) -> None:
        """Begin to write the files that arrived to disk, if 16 MiB are waiting.

        `size` is the sum of their bytes.  Only the executor waits until they are written.
        """
        self._write_back.arrived(files, size)

    def recover(self, files: Sequence[File]) -> None:
        """Take over what interrupted runs left of `files`: as ready files, or as partials.

        Raises `StagingBusyError` if one of their rsyncs still writes.
        """
        if self.incoming.has_more or self._ready.has_unverified:
            with self.exclusive():
                self.incoming.recover(self.absent(files))

    def clear(self) -> None:
        """Drop everything; the area itself can still be used."""
        self._folders.close()
        for name in handles.list_names(self._root):
            _native.remove_all(self._root, name)
        self._open(self._boot)

    def remove(self) -> None:
        """Delete everything, the area's own directories too, and close it.

        Raises `StagingError` if that fails.
        """
        self._write_back.close()
        self._folders.close()
        try:
            for name in handles.list_names(self._root):
                _native.remove_all(self._root, name)
        except OSError as error:
            raise unusable(self.root, error) from error
        finally:
            self.close()
        with suppress(OSError):  # there are other files in it: not ours to remove
            self.root.rmdir()
            self.root.parent.rmdir()

    def exclusive(self, patience: float = LOCK_PATIENCE) -> AbstractContextManager[int]:
        """Hold the lock of the area within the block, and yield its handle.

        rsync inherits the handle, so that an orphan holds the lock too.  Raises `StagingBusyError`
        if the lock is not free after `patience` seconds.
        """
        return locked_file(self._root, b"lock", patience)

    def comparable(self, files: Sequence[File], least: int, few: int) -> Sequence[File]:
        """Return the `files` above `least` bytes that are in the tree, for rsync to compare.

        With any, also the others if they are fewer than `few`; but none below a symlink.  rsync
        resolves paths later; this keeps it from being led out of the tree by the metadata.
        """
        with opened_tree(self._root) as dest:
            top = os.fsencode(handles.handle_path(dest))
            return chosen(files, _native.comparable(top, files, least, few))

    def drop_partials(self, files: Sequence[File] = ()) -> None:
        """Drop the partials and patches of earlier runs, except those of `files`."""
        self._partials.prune(paths(files))
        self._patches.prune(paths(files))


_WORTH = 16 << 20
_BLOCK = 4096
"""Bytes of a file besides its content: its inode, its name, the end of its last block."""


class WriteBack:
    """Starts writing arrived files to disk, in a thread that runs until `close`."""

    def __init__(self, folder: int) -> None:
        """`folder` is an open directory of the file system, until `close`."""
        self._folder = folder
        self._wake = threading.Event()
        self._closed = False
        self._left = 0
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None

    def arrived(self, files: int, size: int) -> None:
        """Count files and their bytes, and begin to write them once there are 16 MiB.

        Does not wait.  A write in progress is finished first.
        """
        with self._guard:
            self._left += files * _BLOCK + size
            if self._closed or self._left < _WORTH:
                return
            self._left = 0
            self._wake.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="huai-write-back")
                self._thread.start()

    def close(self) -> None:
        """End the thread, after the write in progress."""
        with self._guard:
            self._closed = True
            self._wake.set()
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        """Start writing the folder's dirty pages to disk at each wake-up, until closed."""
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._closed:
                return
            with suppress(OSError):
                _native.write_back(self._folder)
