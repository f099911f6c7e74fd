"""The mirrors that hold each module, for requests: read in threads, without walking a disk."""

import time
from pathlib import Path

from huai_server.http.asgi.threads import in_thread
from huai_server.http.mirrors.known_commits import KnownCommits
from huai_server.http.settings import Registry
from huai_server.mirrors.standing import Standing, Standings

_STEP_SECONDS = 60
"""The granularity of time in responses, so that a client can keep one for so long."""


class Holders:
    """The mirrors of all modules."""

    def __init__(self, registry: Registry) -> None:
        """Mirrors come from `registry`, which may change at any time."""
        self._registry = registry
        self._standings = Standings()
        self.commits = KnownCommits()

    async def standings(self, module: str, repository: Path) -> tuple[Standing, ...]:
        """Return the mirrors of a module, the freshest first; `HuaiError` if unreadable."""
        mirrors = self._registry.served().mirrors
        if not mirrors.allowed:
            return ()
        self.commits.forget_all_but(self._registry.served().repositories)
        # Rounded up, so that no mirror that is behind seems up to date.
        now = -(-int(time.time()) // _STEP_SECONDS) * _STEP_SECONDS

        def read() -> tuple[Standing, ...]:
            return self._standings.read(mirrors, module, self.commits.read(repository), now)

        return await in_thread(read)
