"""The mirrors that hold each module, and the commits of modules by serial, for requests."""

import time
from itertools import islice
from pathlib import Path

from huai_server.http.asgi.threads import in_thread
from huai_server.http.branch_cache import BranchCache
from huai_server.http.settings import Registry
from huai_server.mirrors.judge import Commits
from huai_server.mirrors.states import MirrorState, MirrorStates
from huai_server.store.repository import Repository

_KEPT = 5000
"""The newest commits that are kept of a module; attestations of older ones are refused."""
NO_COMMITS = Commits("", {})
_STEP_SECONDS = 60
"""The granularity of time in responses, so that a client can keep one for so long."""


def _read_commits(repository: Repository, former: Commits | None) -> tuple[str | None, Commits]:
    """Return the newest commit's id or None, and the newest commits with the module's identity.

    Those that `former` has are taken from there.
    """
    newest, former = repository.head(), former or NO_COMMITS
    if newest is None:
        return None, NO_COMMITS
    times: dict[int, tuple[str, int]] = {}
    for head in islice(repository.history(), _KEPT):
        serial = head.info.serial
        if former.times.get(serial, ("",))[0] == head.commit:
            times.update((n, each) for n, each in former.times.items() if n <= serial)
            break
        times[serial] = (head.commit, head.time)
    newest_times = dict(sorted(times.items())[-_KEPT:])
    return newest.commit, Commits(repository.snapshot(newest)[0].identity, newest_times)


class KnownMirrors:
    """The mirrors of all modules."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._states = MirrorStates()
        self.commits = BranchCache(registry, _read_commits)

    def has_records(self, module: str) -> bool:
        """True if a mirror has attested anything of a module; read from the disk."""
        mirrors = self._registry.served().mirrors
        return bool(mirrors.allowed) and (mirrors.folder / module).is_dir()

    async def states(self, module: str, repository: Path) -> tuple[MirrorState, ...]:
        """Return the states of a module's mirrors at the next full minute, the least lag first.

        Empty without an attestation.  Raises `HuaiError` if the repository is damaged.
        """
        mirrors = self._registry.served().mirrors
        if not mirrors.allowed:
            return ()
        commits = await self.commits.get(repository) or NO_COMMITS
        # Rounded up, so that no mirror that is behind seems up to date.
        now = -(-int(time.time()) // _STEP_SECONDS) * _STEP_SECONDS
        return await in_thread(lambda: self._states.read(mirrors, module, commits, now))
