"""The newest commits of modules.

Reads in threads.  Rule: memory is bounded, however many commits a module keeps.
"""

from itertools import islice
from pathlib import Path

from huai_server.store.repository import Head, Repository

KEPT = 5000
"""The newest commits of a module that have pages: finding an older one would be slow."""
RECENT = 40
"""The commits of each module that are kept in memory: those of its chart."""


def read_recent(repository: Repository, _: object) -> tuple[str | None, tuple[Head, ...]]:
    """Return the newest commit's id, and at most `RECENT` commits, newest first (`BranchCache`)."""
    commits = tuple(islice(repository.history(), RECENT))
    return (commits[0].commit if commits else None), commits


def newest_commits(repository: Path, most: int) -> tuple[Head, ...]:
    """Return at most so many of the kept commits, newest first; none before the first one."""
    if not repository.exists():
        return ()
    return tuple(islice(Repository(repository).history(), most))
