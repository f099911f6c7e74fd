"""A cache of repositories reads one again when its branch moves, and forgets removed ones."""

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

from huai_server.http.branch_cache import BranchCache
from huai_server.store.repository import Repository
from tests.support.committing import Upstream


class Modules:
    """A registry whose modules come and go."""

    def __init__(self, *repositories: Path) -> None:
        self.repositories = set(repositories)

    def served(self) -> "Modules":
        return self


class Read(NamedTuple):
    serial: int
    former: int | None


def read(repository: Repository, former: Read | None) -> tuple[str | None, Read | None]:
    head = repository.head()
    if head is None:
        return None, None
    return head.commit, Read(head.info.serial, former and former.serial)


def test_it_reads_again_only_what_has_moved(short_path: Path) -> None:
    upstream, other = Upstream(short_path / "one"), Upstream(short_path / "other")
    path = upstream.places.repository
    registry: Any = Modules(path, other.places.repository)

    def commit(where: Upstream, name: str) -> None:
        where.write(name)
        where.commit()

    async def work() -> None:
        cache = BranchCache[Read](registry, read)
        assert await cache.get(path) is None
        commit(upstream, "a")
        first = await cache.get(path)
        assert first == Read(1, None)
        assert await cache.get(path) is first
        commit(upstream, "b")
        assert {*await asyncio.gather(cache.get(path), cache.get(path))} == {Read(2, 1)}
        registry.repositories.remove(path)
        for name in ("a", "b"):  # the second time it is forgotten without a reader
            commit(other, name)
            await cache.get(other.places.repository)
            assert await cache.get(path) == Read(2, None)

    asyncio.run(work())
