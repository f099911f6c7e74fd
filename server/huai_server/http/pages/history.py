"""The newest commits of modules, read again only when a branch has moved.

Reads in threads.  Rule: memory has a bound, however many commits a module keeps.
"""

import asyncio
from itertools import islice
from pathlib import Path

from huai_server.http.git.branch_state import read_branch_state
from huai_server.store.repository import Head, Repository

KEPT = 5000
"""The newest of a module that have pages: older ones would cost a look each."""
RECENT = 40
"""How many commits of every module are kept in memory: those of its picture."""


class Recent:
    """The newest commits of every module, newest first; no more than `RECENT` of each."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[bytes, tuple[Head, ...]]] = {}

    async def read(self, repository: Path) -> tuple[Head, ...]:
        """Those of one module; `HuaiError` for a damaged repository."""
        state = read_branch_state(repository)
        known = self._known.get(repository)
        if known is not None and known[0] == state:
            return known[1]
        found = await asyncio.to_thread(newest_commits, repository, RECENT)
        if found and found[0].commit.encode() == state:
            self._known[repository] = (state, found)
        return found

    def forget_all_but(self, repositories: set[Path]) -> None:
        """Keep no more than the modules there are."""
        for repository in self._known.keys() - repositories:
            del self._known[repository]


def newest_commits(repository: Path, most: int) -> tuple[Head, ...]:
    """At most so many commits that are kept, newest first; none before the first one."""
    if not repository.exists():
        return ()
    return tuple(islice(Repository(repository).history(), most))
