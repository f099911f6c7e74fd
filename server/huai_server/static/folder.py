"""A folder of this machine, which some web server hands out.

Files are readable by everybody, whatever the umask says: the web server is another user.
Order of writes: see `target`; a file gets its name when it is on the disk, and folders are durable
before the head is replaced.
"""

import os
from contextlib import suppress
from pathlib import Path

from huai_schema.errors import ExitCode, HuaiError
from huai_schema.program.durable import replace_file, sync_folder
from huai_schema.program.packs import TEMPORARY

_FILE, _FOLDER = 0o644, 0o755


def module_folder(root: Path, name: str) -> Path:
    """Where the files of a module are in a folder: its address in that of the web server."""
    return root / "git" / f"{name}.git"


class NoFolderError(HuaiError):
    """The folder is not there."""

    exit_code = ExitCode.DESTINATION


class Folder:
    """The static files of one module in it (`Target`)."""

    def __init__(self, root: Path, name: str) -> None:
        """Of the module `name` below `root`, which has to be there."""
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
        self._make(self.drafts)
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
        path.chmod(_FILE)
        path.rename(final)
        self._changed.add(final.parent)

    def replace(self, name: str, content: bytes) -> None:
        """As `Target` says."""
        for folder in self._changed:
            sync_folder(folder)
        self._changed.clear()
        path = self._folder / name
        replace_file(path, content, self.drafts / f"{TEMPORARY}head", permissions=_FILE)

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
