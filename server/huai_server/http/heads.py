"""The newest commit of every module, read again only when its branch has moved."""

import asyncio
from typing import TYPE_CHECKING

from huai_server.http.git.branch_state import read_branch_state
from huai_server.http.settings import Registry
from huai_server.store.repository import Head, read_head

if TYPE_CHECKING:
    from pathlib import Path


class Heads:
    """Answers from memory as long as the branch's state is the one it was read at."""

    def __init__(self, registry: Registry) -> None:
        """Names and repositories come from `registry`, which may change at any time."""
        self._registry = registry
        self._known: dict[Path, tuple[bytes, Head]] = {}

    def names(self) -> list[str]:
        """Names of all modules, sorted."""
        return sorted(self._registry.modules())

    async def read(self, name: str) -> Head | None:
        """The newest commit of a module; None before the first one, and for an unknown name."""
        repository = self._registry.modules().get(name)
        state = None if repository is None else read_branch_state(repository)
        if repository is None or state is None:
            return None
        known = self._known.get(repository)
        if known is not None and known[0] == state:
            return known[1]
        head = await asyncio.to_thread(read_head, repository)
        if head is not None and head.commit.encode() == state:
            self._forget_removed()
            self._known[repository] = (state, head)
        return head

    def _forget_removed(self) -> None:
        """Keep no more than the modules there are."""
        present = set(self._registry.modules().values())
        for repository in self._known.keys() - present:
            del self._known[repository]
