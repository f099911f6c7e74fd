"""The newest commits of modules, read again only when a branch has moved.

Reads in threads.  Rule: memory is bounded, however many commits a module keeps.
"""

import asyncio
from itertools import islice
from pathlib import Path

from huai_server.store.repository import Head, Repository, read_branch

KEPT = 5000
"""The newest commits of a module that have pages: finding an older one would be slow."""
RECENT = 40
"""The commits of each module that are kept in memory: those of its chart."""


class Recent:
    """The newest commits of every module, newest first; at most `RECENT` of each."""

    def __init__(self) -> None:
        self._commits: dict[Path, tuple[str, tuple[Head, ...]]] = {}

    async def read(self, repository: Path) -> tuple[Head, ...]:
        """Return the commits of one module; `HuaiError` for a damaged repository."""
        state = read_branch(repository)
        cached = self._commits.get(repository)
        if cached is not None and cached[0] == state:
            return cached[1]
        commits = await asyncio.to_thread(newest_commits, repository, RECENT)
        if commits and commits[0].commit == state:
            self._commits[repository] = (state, commits)
        return commits

    def forget_all_but(self, repositories: set[Path]) -> None:
        """Forget all other repositories."""
        for repository in self._commits.keys() - repositories:
            del self._commits[repository]


def newest_commits(repository: Path, most: int) -> tuple[Head, ...]:
    """Return at most so many of the kept commits, newest first; none before the first one."""
    if not repository.exists():
        return ()
    return tuple(islice(Repository(repository).history(), most))
