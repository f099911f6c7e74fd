"""Handles of the directories of a tree, opened component by component.

No component that is a symlink is followed, so a handle is always one of a directory below DEST.
Some handles are cached.  Rule to keep: a caller that renames or removes a directory calls `forget`.

A directory of this user without u+rwx (mode 0555, as many mirrors have them) gets these rights when
they are needed; `restore_modes` takes them back.
"""

import errno
import os
from collections import OrderedDict

from huai_client.tree.handles import handle_path
from huai_schema.paths import RelPath, ancestors, join

CAPACITY = 128
"""The number of cached handles; callers use only a few at a time."""

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OWNER_ALL = 0o700


class Folders:
    """The open directories below one root handle."""

    def __init__(self, root: int, *, make_writable: bool) -> None:
        """The caller closes `root`.  `make_writable`: whether directories may get u+rwx."""
        self._root = root
        self._may_make_writable = make_writable
        self._open: OrderedDict[RelPath, int] = OrderedDict()
        self._loosened: dict[RelPath, int] = {}

    def open(self, path: RelPath) -> int:
        """An O_PATH handle, valid during the next few calls; the caller must not close it.

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
        """Give a directory u+rwx; False if this is not allowed, or it has them."""
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
        """Record that the directory has its final mode, which `restore_modes` must not change."""
        self._loosened.pop(path, None)

    def restore_modes(self) -> list[RelPath]:
        """Restore the modes of directories that got u+rwx; returns the paths where this failed."""
        failed: list[RelPath] = []
        while self._loosened:
            # Deepest first: on the way, a directory above may have to get u+rwx again.
            path = max(self._loosened, key=lambda known: (known.count(b"/"), known))
            mode = self._loosened.pop(path)
            try:
                handle_path(self.open(path)).chmod(mode)
            except OSError:
                failed.append(path)
        return failed

    def forget(self, old: RelPath, new: RelPath | None = None) -> None:
        """Record that `old` was removed, or renamed to `new`, with everything below it."""
        below = old + b"/"
        for path in [known for known in self._open if known == old or known.startswith(below)]:
            os.close(self._open.pop(path))
        for path in [known for known in self._loosened if known == old or known.startswith(below)]:
            mode = self._loosened.pop(path)
            if new is not None:
                self._loosened[RelPath(new + path[len(old) :])] = mode

    def close(self) -> None:
        """Close all cached handles."""
        while self._open:
            os.close(self._open.popitem()[1])
