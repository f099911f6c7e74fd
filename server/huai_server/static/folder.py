"""A local folder: a module's repository, or a copy that a web server serves.

All users may read the files, whatever the umask is: the web server is another user.  The folder of
a private module is closed: the web server reads it by the group of the place.
Order of writes: see `target`; a file gets its name when it is on the disk, and folders are durable
before the head is replaced.
"""

import os
from contextlib import suppress
from pathlib import Path

from huai_program.configuration import reject_foreign
from huai_program.durable import replacing, sync_folder
from huai_program.packs import TEMPORARY
from huai_schema.errors import ExitCode, HuaiError
from huai_server.state.closed_folder import close_folder
from huai_server.static.target import FILE_MODE

_FOLDER = 0o755


def module_folder(root: Path, name: str) -> Path:
    """Return the folder of a module's files below `root`, by its address on the web server."""
    return root / "git" / f"{name}.git"


class NoFolderError(HuaiError):
    """The folder does not exist."""

    exit_code = ExitCode.DESTINATION


class StaticFolder:
    """The static files of one module in a folder (`Target`)."""

    def __init__(self, folder: Path, root: Path, *, closed: bool = False) -> None:
        """Use `folder` below `root`, which must exist, or the repository, which is both.

        `closed`: only the group of `root` may read it.
        """
        self._closed = closed
        self._root = root
        self._folder = folder
        self.drafts = self._folder / "static"
        self._changed: set[Path] = set()

    def begin(self) -> None:
        """Create and check the folders, and delete the drafts of a killed run.

        Raises `NoFolderError` if the place is missing, or the folder of a repository is a symlink;
        `ConfigError` if this user is root, and another one may change the folder of a copy.
        """
        if not self._root.is_dir():
            raise NoFolderError(
                f"{self._root}: the folder does not exist", hint="create it, or name another one"
            )
        self._reject_foreign(self._root)
        self._make_folder(self.drafts)
        if self._closed:
            close_folder(self._folder, self._root)
        self._reject_foreign(self.drafts)
        for path in self.drafts.glob(f"{TEMPORARY}*"):
            path.unlink(missing_ok=True)

    def read(self, name: str, limit: int) -> bytes | None:
        """Return the first `limit` bytes of a file; None if it is missing."""
        try:
            with (self._folder / name).open("rb") as file:
                return file.read(limit)
        except FileNotFoundError:
            return None

    def add(self, name: str, path: Path) -> None:
        """Rename the file at `path` to its place; `replace` makes that durable.

        Raises as `begin` does for a folder that another user may change.
        """
        final = self._folder / name
        self._make_folder(final.parent)
        self._reject_foreign(final.parent)
        path.rename(final)
        self._changed.add(final.parent)

    def replace(self, name: str, content: bytes) -> None:
        """Make added files durable, then replace one that changes, durably, by a rename."""
        for folder in self._changed:
            sync_folder(folder)
        self._changed.clear()
        path = self._folder / name
        with replacing(path, self.drafts / f"{TEMPORARY}head", permissions=FILE_MODE) as file:
            file.write(content)
            file.flush()  # a later write would set the time
            _set_later_time(file.fileno(), path)

    def names(self, folder: str) -> dict[str, float]:
        """Return the names of the files below a folder, with times in seconds since the epoch."""
        times = {}
        for place, _, names in os.walk(self._folder / folder):
            for name in names:
                path = Path(place, name)
                with suppress(FileNotFoundError):
                    times[str(path.relative_to(self._folder))] = path.stat().st_mtime
        return times

    def remove(self, name: str) -> None:
        """Delete a file, if it exists."""
        (self._folder / name).unlink(missing_ok=True)

    def _reject_foreign(self, folder: Path) -> None:
        """Raise an error if another user's symlink at `folder` could lead root's files elsewhere.

        That is `ConfigError` for a copy, and `NoFolderError` for a symlink in the repository.
        A repository may belong to another user, for whom root commits: only `folder` is checked.
        """
        if self._folder != self._root:
            reject_foreign(folder)
        elif folder.is_symlink():
            raise NoFolderError(f"{folder}: a symlink, not a folder", hint="remove it")

    def _make_folder(self, folder: Path) -> None:
        """Make a folder, and those above, for all to read; `replace` makes them durable.

        As root it is given the owner of the folder above.
        """
        if folder == self._root or folder.is_dir():
            return
        self._make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            os.fchmod(handle, _FOLDER)
            if os.geteuid() == 0:  # the repository's owner may make the next commit
                above = folder.parent.stat()
                os.fchown(handle, above.st_uid, above.st_gid)
        finally:
            os.close(handle)
        self._changed.add(folder.parent)


def _set_later_time(handle: int, former: Path) -> None:
    """Give a file a time at least a whole second after that of the file it replaces.

    nginx makes an ETag of the size and the second, and rsync compares just these: two heads of one
    second would look equal.
    """
    with suppress(FileNotFoundError):
        second = int(former.stat().st_mtime) + 1
        if second > os.fstat(handle).st_mtime:
            os.utime(handle, (second, second))
