"""What no commit says of a module, looked up when somebody asks: missing digests, the fallback.

Counts digests in threads, once for each commit, and only of modules whose digests come later, as
`huai-server status` does.
"""

import asyncio
from pathlib import Path

from huai_schema.errors import HuaiError
from huai_server.http.fallback_clients import fallback_clients
from huai_server.http.settings import Registry, every_repository
from huai_server.store.repository import Head, Repository


class Looks:
    """The looks at all modules of one server."""

    def __init__(self, registry: Registry) -> None:
        """Modules come from `registry`, which may change at any time."""
        self._registry = registry
        self._known: dict[Path, tuple[str, int | None]] = {}
        self._turn = asyncio.Lock()

    def fallback_clients(self, name: str) -> int | None:
        """How many clients the fallback serves of a module; None: nobody knows."""
        place = self._registry.fallback().get(name)
        return fallback_clients(place) if place else None

    async def undigested(self, name: str, head: Head) -> int | None:
        """Files without a digest in the commit `head`.

        None: digests of this module do not come later, or the commit cannot be read.
        """
        repository = self._registry.undigested().get(name)
        if repository is None:
            return None
        async with self._turn:  # one count for all that ask at the same time
            known = self._known.get(repository)
            if known is None or known[0] != head.commit:
                self._forget_removed()
                count = await asyncio.to_thread(_count, repository, head)
                known = self._known[repository] = (head.commit, count)
        return known[1]

    def _forget_removed(self) -> None:
        for repository in self._known.keys() - every_repository(self._registry):
            del self._known[repository]


def _count(repository: Path, head: Head) -> int | None:
    try:
        return Repository(repository).snapshot(head)[1].undigested().files
    except HuaiError:
        return None
