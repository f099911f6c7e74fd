"""Which mirror holds what, for whoever answers a request: asked in threads, no disk is walked."""

import time
from pathlib import Path

from huai_server.http.asgi.threads import in_thread
from huai_server.http.mirrors.known_commits import KnownCommits
from huai_server.http.settings import Registry, every_repository
from huai_server.mirrors.standing import Standing, Standings

_STEP_SECONDS = 60
"""Answers stay the same for so long, so that whoever has one need not fetch it again."""


class WhoHolds:
    """The mirrors of all modules."""

    def __init__(self, registry: Registry) -> None:
        """Mirrors come from `registry`, which may change at any time."""
        self._registry = registry
        self._standings = Standings()
        self.commits = KnownCommits()

    async def standings(self, module: str, repository: Path) -> tuple[Standing, ...]:
        """Those of one module, the freshest first; `HuaiError` for a damaged repository."""
        mirrors = self._registry.mirrors()
        if not mirrors.allowed:
            return ()
        self.commits.forget_all_but(every_repository(self._registry))
        # Up, so that no mirror that is behind looks as if it were not.
        now = -(-int(time.time()) // _STEP_SECONDS) * _STEP_SECONDS

        def read() -> tuple[Standing, ...]:
            return self._standings.read(mirrors, module, self.commits.read(repository), now)

        return await in_thread(read)
