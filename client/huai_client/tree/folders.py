"""Handles of the directories of a tree, opened component by component.

No component is ever followed if it is a symlink, so a handle always lies below DEST.
A few handles are kept.  Rule: whoever renames or removes a directory calls `forget`.

A directory of ours that we may not search or write in (mode 0555, as many mirrors have
them) is opened up for its owner on demand and remembered, so that it can be closed again.
"""

import errno
import os
from collections import OrderedDict

from huai_client.tree.handles import handle_path
from huai_schema.paths import RelPath, ancestors, join

CAPACITY = 128
"""Kept handles; callers hold at most a few at once between two calls of `open`."""

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OWNER_ALL = 0o700


class Folders:
    """The open directories below one root handle."""

    def __init__(self, root: int, *, make_writable: bool) -> None:
        """`root` stays the caller's to close; `make_writable` allows to open up directories."""
        self._root = root
        self._may_make_writable = make_writable
        self._open: OrderedDict[RelPath, int] = OrderedDict()
        self._loosened: dict[RelPath, int] = {}

    def open(self, path: RelPath) -> int:
        """An O_PATH handle, valid until the next few calls; not the caller's to close.

        Raises:
            OSError: ENOENT, ENOTDIR (a symlink or another non-directory on the way), EACCES.
        """
        if not path:
            return self._root
        handle = self._open.get(path)
        if handle is not None:
            self._open.move_to_end(path)
            return handle
        handle = self._descend(path)
        self._open[path] = handle
        if len(self._open) > CAPACITY:
            os.close(self._open.popitem(last=False)[1])
        return handle

    def _descend(self, path: RelPath) -> int:
        place = next(above for above in ancestors(path) if above in self._open or not above)
        start = handle = self._open.get(place, self._root)
        for name in path[len(place) :].removeprefix(b"/").split(b"/"):
            try:
                inner = self._enter(handle, name, place)
            finally:
                if handle != start:
                    os.close(handle)
            handle, place = inner, join(place, name)
        return handle

    def _enter(self, handle: int, name: bytes, place: RelPath) -> int:
        try:
            return os.open(name, _DIRECTORY, dir_fd=handle)
        except OSError as error:
            if error.errno != errno.EACCES or not self._loosen(handle, place):
                raise
            return os.open(name, _DIRECTORY, dir_fd=handle)

    def make_writable(self, path: RelPath) -> bool:
        """Give ourselves u+rwx on a directory; False if that is not ours to do, or not needed."""
        return self._loosen(self.open(path), path)

    def _loosen(self, handle: int, path: RelPath) -> bool:
        status = os.fstat(handle)
        mode = status.st_mode & 0o7777
        ours = self._may_make_writable and status.st_uid == os.geteuid()
        if not ours or mode & _OWNER_ALL == _OWNER_ALL:
            return False
        handle_path(handle).chmod(mode | _OWNER_ALL)
        self._loosened.setdefault(path, mode)
        return True

    def settled(self, path: RelPath) -> None:
        """The directory has its final mode: nothing is left to be put back."""
        self._loosened.pop(path, None)

    def restore_modes(self) -> list[RelPath]:
        """Put back every mode that was loosened; returns where that failed."""
        failed: list[RelPath] = []
        while self._loosened:
            # Deepest first: to get there, a directory above may be loosened once more.
            path = max(self._loosened, key=lambda known: (known.count(b"/"), known))
            mode = self._loosened.pop(path)
            try:
                handle_path(self.open(path)).chmod(mode)
            except OSError:
                failed.append(path)
        return failed

    def forget(self, old: RelPath, new: RelPath | None = None) -> None:
        """`old` was removed, or renamed to `new`, with everything below."""
        below = old + b"/"
        for path in [known for known in self._open if known == old or known.startswith(below)]:
            os.close(self._open.pop(path))
        for path in [known for known in self._loosened if known == old or known.startswith(below)]:
            mode = self._loosened.pop(path)
            if new is not None:
                self._loosened[RelPath(new + path[len(old) :])] = mode

    def close(self) -> None:
        """Close every handle that was opened here."""
        while self._open:
            os.close(self._open.popitem()[1])
