"""A cache of values that were read from repositories, for requests."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from huai_server.http.asgi.threads import in_thread
from huai_server.http.settings import Registry
from huai_server.store.repository import Repository, read_branch

_T = TypeVar("_T")


class BranchCache(Generic[_T]):
    """A value of each repository, which is read again, in a thread, when its branch has moved."""

    def __init__(
        self,
        registry: Registry,
        read: Callable[[Repository, _T | None], tuple[str | None, _T | None]],
    ) -> None:
        """`read` returns the newest commit (hex id) and its value, and may use the former value."""
        self._registry = registry
        self._read = read
        self._values: dict[Path, tuple[str, _T]] = {}
        self._turns: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def get(self, repository: Path) -> _T | None:
        """Return the value for the newest commit; None before the first one.

        Raises `HuaiError` if the repository is damaged.
        """
        async with self._turns[repository]:  # one reader for all simultaneous requests
            state, cached = read_branch(repository), self._values.get(repository)
            if cached is not None and cached[0] == state:
                return cached[1]
            former = cached and cached[1]
            commit, value = await in_thread(lambda: self._open_and_read(repository, former))
            self._forget_removed()
            if commit is not None and value is not None:
                self._values[repository] = commit, value
            return value

    def _open_and_read(self, repository: Path, former: _T | None) -> tuple[str | None, _T | None]:
        """Read the newest commit's id and its value; None twice without a repository."""
        if not repository.exists():
            return None, None
        return self._read(Repository(repository), former)

    def _forget_removed(self) -> None:
        """Delete the values of repositories that are not served any more."""
        for repository in self._values.keys() - self._registry.served().repositories:
            del self._values[repository]
            self._turns.pop(repository, None)  # a reader of it may have begun before
