"""Facts about a module that no commit records: missing digests, and clients of the fallback.

Digests are counted in threads, once for each commit and only in modules with late digests, as
`huai-server status` does.
"""

import asyncio
from pathlib import Path

from huai_schema.errors import HuaiError
from huai_server.http.fallback_clients import fallback_clients
from huai_server.http.settings import Registry
from huai_server.store.repository import Head, Repository


class ModuleFacts:
    """The facts about all modules of one server."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._counts: dict[Path, tuple[str, int | None]] = {}
        self._turn = asyncio.Lock()

    def fallback_clients(self, name: str) -> int | None:
        """Return how many clients the fallback of a module serves; None if that is unknown."""
        place = self._registry.served().fallback.get(name)
        return fallback_clients(place) if place else None

    async def undigested(self, name: str, head: Head) -> int | None:
        """Return the number of files without a digest in the commit `head`.

        None if the module has no late digests, or the commit cannot be read.
        """
        repository = self._registry.served().undigested.get(name)
        if repository is None:
            return None
        async with self._turn:  # one count for all simultaneous requests
            cached = self._counts.get(repository)
            if cached is None or cached[0] != head.commit:
                self._forget_removed()
                count = await asyncio.to_thread(_count, repository, head)
                cached = self._counts[repository] = (head.commit, count)
        return cached[1]

    def _forget_removed(self) -> None:
        for repository in self._counts.keys() - self._registry.served().repositories:
            del self._counts[repository]


def _count(repository: Path, head: Head) -> int | None:
    try:
        return Repository(repository).snapshot(head)[1].undigested().files
    except HuaiError:
        return None
