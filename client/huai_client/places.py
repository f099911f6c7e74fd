"""Where the state of a module stands below the client's root, outside of every served tree.

- `ROOT/client.toml`
- `ROOT/modules/NAME/state.json`: what the tree was brought to
- `ROOT/modules/NAME/repository.git`: the metadata that was fetched
- `ROOT/modules/NAME/lock`
- `ROOT/modules/NAME/waiting`: deletions that wait for their time
"""

from pathlib import Path
from typing import NamedTuple


class ModulePlaces(NamedTuple):
    """The files of one module."""

    folder: Path

    @property
    def state(self) -> Path:
        """What the tree was brought to."""
        return self.folder / "state.json"

    @property
    def waiting(self) -> Path:
        """Deletions that wait for their time."""
        return self.folder / "waiting"

    @property
    def repository(self) -> Path:
        """The bare git repository."""
        return self.folder / "repository.git"

    @property
    def lock(self) -> Path:
        """Held by a sync while it runs."""
        return self.folder / "lock"


def module_places(root: Path, name: str) -> ModulePlaces:
    """The places of the module `name`, a checked name."""
    return ModulePlaces(root / "modules" / name)
