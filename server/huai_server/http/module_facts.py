"""The newest commit of a module, and facts that no commit records.

These are damage, missing digests, and clients of the fallback.  Digests are counted in threads,
once for each commit and only in modules with late digests, as `huai-server status` does.
"""

from functools import lru_cache
from pathlib import Path

from huai_schema.errors import HuaiError
from huai_server.http.branch_cache import BranchCache
from huai_server.http.fallback_clients import fallback_clients
from huai_server.http.settings import Registry
from huai_server.state.file_stamp import FileCache
from huai_server.state.paths import ModulePlaces
from huai_server.store.repository import Head, Repository
from huai_server.store.scrub_record import read_record


class ModuleFacts:
    """The facts about all modules of one server."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._heads = BranchCache(registry, _read_head)
        self._damage = FileCache[Path, int]()
        self._counts = BranchCache(registry, _count_undigested)

    async def head(self, name: str) -> Head | None:
        """Return the newest commit of a module; None before the first one, or without the module.

        Raises `HuaiError` if the repository is damaged.
        """
        repository = self._registry.served().repository(name)
        return None if repository is None else await self._heads.get(repository)

    def damaged(self, name: str) -> int:
        """Return the number of files that the last scrub found damaged; 0 if unknown."""
        repository = self._registry.served().repository(name)
        if repository is None:
            return 0
        place = _scrub_place(repository)
        return self._damage.get(place, place, lambda: len(read_record(place).damage)) or 0

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


@lru_cache(maxsize=4096)
def _scrub_place(repository: Path) -> Path:
    return ModulePlaces(repository.parent).scrub


def _read_head(repository: Repository, _: object) -> tuple[str | None, Head | None]:
    """Return the newest commit's id and head, or None twice (`BranchCache`)."""
    head = repository.head()
    return (head.commit if head else None), head


def _count_undigested(repository: Repository, _: object) -> tuple[str | None, int]:
    """Count files without a digest, 0 without a commit; also return the commit's id or None."""
    head = repository.head()
    if head is None:
        return None, 0
    return head.commit, repository.snapshot(head)[1].undigested()[0]
