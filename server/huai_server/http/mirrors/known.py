"""The mirrors that hold each module, and the commits of modules by serial, for requests.

Repositories are read in threads, and only new commits again.
"""

import time
from itertools import islice
from pathlib import Path
from threading import Lock

from huai_server.http.asgi.threads import in_thread
from huai_server.http.settings import Registry
from huai_server.mirrors.judge import Commits
from huai_server.mirrors.states import MirrorState, MirrorStates
from huai_server.store.repository import Repository, read_branch

_KEPT = 5000
"""The newest commits that are kept of a module; attestations of older ones are refused."""
_NONE = Commits("", {})
_STEP_SECONDS = 60
"""The granularity of time in responses, so that a client can keep one for so long."""


class KnownCommits:
    """The commits of all modules."""

    def __init__(self) -> None:
        self._commits: dict[Path, tuple[str, Commits]] = {}
        self._turn = Lock()

    def read(self, repository: Path) -> Commits:
        """Return the commits of one module; `HuaiError` for a damaged repository."""
        with self._turn:
            state = read_branch(repository)
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


class KnownMirrors:
    """The mirrors of all modules."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._states = MirrorStates()
        self.commits = KnownCommits()

    async def states(self, module: str, repository: Path) -> tuple[MirrorState, ...]:
        """Return the states of a module's mirrors, the freshest first; `HuaiError` for damage."""
        mirrors = self._registry.served().mirrors
        if not mirrors.allowed:
            return ()
        self.commits.forget_all_but(self._registry.served().repositories)
        # Rounded up, so that no mirror that is behind seems up to date.
        now = -(-int(time.time()) // _STEP_SECONDS) * _STEP_SECONDS

        def read() -> tuple[MirrorState, ...]:
            return self._states.read(mirrors, module, self.commits.read(repository), now)

        return await in_thread(read)
