"""Facts about a module that no commit records: missing digests, and clients of the fallback.

Digests are counted in threads, once for each commit and only in modules with late digests, as
`huai-server status` does.
"""

from huai_schema.errors import HuaiError
from huai_server.http.branch_cache import BranchCache
from huai_server.http.fallback_clients import fallback_clients
from huai_server.http.settings import Registry
from huai_server.store.repository import Repository


class ModuleFacts:
    """The facts about all modules of one server."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._counts = BranchCache(registry, _count_undigested)

    def fallback_clients(self, name: str) -> int | None:
        """Return how many clients the fallback of a module serves; None if that is unknown."""
        place = self._registry.served().fallback.get(name)
        return fallback_clients(place) if place else None

    async def undigested(self, name: str) -> int | None:
        """Return the number of files without a digest in the newest commit.

        0 without a commit; None if the module has no late digests, or the commit cannot be read.
        """
        served = self._registry.served()
        module, repository = served.settings.get(name), served.repository(name)
        if module is None or repository is None or module.digest != "later":
            return None
        try:
            return await self._counts.get(repository)
        except HuaiError:
            return None


def _count_undigested(repository: Repository, _: object) -> tuple[str | None, int]:
    """Count files without a digest, 0 without a commit; also return the commit's id or None."""
    head = repository.head()
    if head is None:
        return None, 0
    return head.commit, repository.snapshot(head)[1].undigested()[0]
