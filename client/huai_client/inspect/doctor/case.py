"""What is examined: one module of one client root."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from huai_client.config import Module
from huai_client.metadata.repository import Commit, Repository
from huai_client.state import state as states
from huai_client.state.paths import ModulePlaces


@dataclass(frozen=True)
class Case:
    """A module that may have anything wrong with it."""

    name: str
    module: Module
    places: ModulePlaces

    @property
    def dest(self) -> Path:
        """The tree."""
        return Path(self.module.dest)

    @cached_property
    def state(self) -> states.State:
        """What is recorded; `StateError` if it cannot be read."""
        return states.load(self.places.state)

    def newest_here(self) -> Commit | None:
        """The commit that was fetched or applied last; None: there is none.

        `DamagedRepositoryError` if it cannot be read.
        """
        if not self.places.repository.exists():
            return None
        repository = Repository(self.places.repository, make=False)
        for commit in (repository.fetched, self.state.applied):
            if commit is not None and repository.has(commit):
                return repository.commit(commit)
        return None
