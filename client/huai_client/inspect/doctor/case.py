"""What is examined: one module of one client root."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from huai_client.metadata.commit import Commit
from huai_client.metadata.repository import Repository
from huai_client.mirror import Mirror
from huai_client.state import state as states


@dataclass(frozen=True)
class Case:
    """A module that may have anything wrong with it."""

    mirror: Mirror

    @property
    def dest(self) -> Path:
        """The top of the tree."""
        return self.mirror.dest

    @cached_property
    def state(self) -> states.State:
        """What is recorded; `StateError` if it cannot be read."""
        return states.load(self.mirror.paths.state)

    def newest_here(self) -> Commit | None:
        """The commit that was fetched or applied last; None: there is none.

        `DamagedRepositoryError` if it cannot be read.
        """
        if not self.mirror.paths.repository.exists():
            return None
        repository = Repository(self.mirror.paths.repository, make=False)
        for commit in (repository.fetched, self.state.applied):
            if commit is not None and repository.has(commit):
                return repository.commit(commit)
        return None
