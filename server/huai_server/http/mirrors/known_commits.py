"""The commits of modules by serial; only new ones are read again.

Reads repositories, so call it in threads.
"""

from itertools import islice
from pathlib import Path
from threading import Lock

from huai_server.http.git.branch_state import read_branch_state
from huai_server.mirrors.judge import Commits
from huai_server.store.repository import Repository

_KEPT = 5000
"""The newest commits that are kept of a module; attestations of older ones are refused."""
_NONE = Commits("", {})


class KnownCommits:
    """The commits of all modules."""

    def __init__(self) -> None:
        self._commits: dict[Path, tuple[bytes, Commits]] = {}
        self._turn = Lock()

    def read(self, repository: Path) -> Commits:
        """Return the commits of one module; `HuaiError` for a damaged repository."""
        with self._turn:
            state = read_branch_state(repository)
            cached = self._commits.get(repository)
            if cached is not None and cached[0] == state:
                return cached[1]
            if state is None or not repository.exists():
                return _NONE
            commits = _read(Repository(repository), cached[1] if cached else _NONE)
            self._commits[repository] = (state, commits)
            return commits

    def forget_all_but(self, repositories: set[Path]) -> None:
        """Forget all other repositories."""
        with self._turn:
            for repository in self._commits.keys() - repositories:
                del self._commits[repository]


def _read(repository: Repository, former: Commits) -> Commits:
    """Read the newest commits down to a former one; those below it are taken from `former`."""
    newest = repository.head()
    if newest is None:
        return _NONE
    times: dict[int, tuple[str, int]] = {}
    for head in islice(repository.history(), _KEPT):
        serial = head.info.serial
        if former.times.get(serial, ("",))[0] == head.commit:
            times.update((n, each) for n, each in former.times.items() if n <= serial)
            break
        times[serial] = (head.commit, head.time)
    newest_times = dict(sorted(times.items())[-_KEPT:])
    return Commits(repository.snapshot(newest)[0].identity, newest_times)
