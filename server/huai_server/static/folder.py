"""A folder of this machine, which some web server hands out.

Files are readable by everybody, whatever the umask says: the web server is another user.  The
folder of a private module is closed: the web server reads it by the group of the place.
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

_FILE, _FOLDER = 0o644, 0o755


def module_folder(root: Path, name: str) -> Path:
    """Where the files of a module are in a folder: its address in that of the web server."""
    return root / "git" / f"{name}.git"


class NoFolderError(HuaiError):
    """The folder is not there."""

    exit_code = ExitCode.DESTINATION


class Folder:
    """The static files of one module in it (`Target`)."""

    def __init__(self, root: Path, name: str, *, closed: bool = False) -> None:
        """Take the module `name` below `root`, which has to be there; `closed`: for its group."""
        self._closed = closed
        self._root = root
        self._folder = module_folder(root, name)
        self.drafts = self._folder / "static"
        self._changed: set[Path] = set()

    def begin(self) -> None:
        """As `Target` says."""
        if not self._root.is_dir():
            raise NoFolderError(
                f"{self._root}: there is no such folder", hint="make it, or name another one"
            )
        # Others could put symlinks there, and root's files would be written where they lead.
        reject_foreign(self._root)
        self._make(self.drafts)
        if self._closed:
            close_folder(self._folder, self._root)
        reject_foreign(self.drafts)
        for path in self.drafts.glob(f"{TEMPORARY}*"):
            path.unlink(missing_ok=True)

    def read(self, name: str, limit: int) -> bytes | None:
        """As `Target` says."""
        try:
            with (self._folder / name).open("rb") as file:
                return file.read(limit)
        except FileNotFoundError:
            return None

    def put(self, name: str, path: Path) -> None:
        """As `Target` says."""
        final = self._folder / name
        self._make(final.parent)
        reject_foreign(final.parent)
        path.chmod(_FILE)
        path.rename(final)
        self._changed.add(final.parent)

    def replace(self, name: str, content: bytes) -> None:
        """As `Target` says."""
        for folder in self._changed:
            sync_folder(folder)
        self._changed.clear()
        path = self._folder / name
        with replacing(path, self.drafts / f"{TEMPORARY}head", permissions=_FILE) as file:
            file.write(content)
            file.flush()  # a later write would set the time
            _set_later_time(file.fileno(), path)

    def names(self, folder: str) -> dict[str, float]:
        """As `Target` says."""
        found = {}
        for place, _, names in os.walk(self._folder / folder):
            for name in names:
                path = Path(place, name)
                with suppress(FileNotFoundError):
                    found[str(path.relative_to(self._folder))] = path.stat().st_mtime
        return found

    def remove(self, name: str) -> None:
        """As `Target` says."""
        (self._folder / name).unlink(missing_ok=True)

    def _make(self, folder: Path) -> None:
        if folder == self._root or folder.is_dir():
            return
        self._make(folder.parent)
        folder.mkdir(exist_ok=True)
        folder.chmod(_FOLDER)
        self._changed.add(folder.parent)


def _set_later_time(handle: int, former: Path) -> None:
    """Give a file a time that is a whole second after that of the file it replaces.

    nginx makes an ETag of the size and the second, and rsync compares just these: two heads of one
    second would be one.
    """
    with suppress(FileNotFoundError):
        second = int(former.stat().st_mtime) + 1
        if second > os.fstat(handle).st_mtime:
            os.utime(handle, (second, second))
