"""Where the state of a module stands below the root.

- `ROOT/server.toml`
- `ROOT/modules/NAME/repository.git`: the metadata, served
- `ROOT/modules/NAME/digests.sqlite`: a cache, may be deleted
- `ROOT/modules/NAME/lock`
"""

from pathlib import Path
from typing import NamedTuple


class ModulePlaces(NamedTuple):
    """The files of one module."""

    folder: Path

    @property
    def repository(self) -> Path:
        """The bare git repository."""
        return self.folder / "repository.git"

    @property
    def digests(self) -> Path:
        """The digest cache."""
        return self.folder / "digests.sqlite"

    @property
    def lock(self) -> Path:
        """Held by a commit while it runs."""
        return self.folder / "lock"


def module_places(root: Path, name: str) -> ModulePlaces:
    """The places of the module `name`, a checked name."""
    return ModulePlaces(root / "modules" / name)
