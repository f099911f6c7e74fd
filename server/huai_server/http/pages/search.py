"""Searches for names in commits.

The names of a module are read at its first search, and kept in memory for the next ones; a search
after a commit reads only what changed.  Runs in threads.  Rule: time, hits and memory are bounded,
whatever a commit holds.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Literal, NamedTuple

from huai_native._native import NameIndex
from huai_schema.codec.columns import batch_entries
from huai_schema.entries import Entry
from huai_schema.errors import HuaiError
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import ROOT, RelPath
from huai_server.http.pages.reading import LATEST, ROWS, open_commit
from huai_server.store.repository import Head, Repository, read_branch

_TEXT_BYTES = 200
"""The most bytes of a text to search for."""
_SECONDS = 3.0
_MODULE_HITS = 20
"""The most hits of each module in a search of all."""
_KEPT_BYTES = 256 << 20
"""The most bytes of names of all modules together: a million entries take about 26 MB."""


class Hits(NamedTuple):
    """The results of a search."""

    entries: list[Entry]
    limit: Literal["hits", "time"] | None
    """The limit that ended the search before its end, or None."""


class ModuleHits(NamedTuple):
    """The results in the newest commit of a module."""

    serial: int
    hits: Hits


class _Module(NamedTuple):
    """A module that was searched."""

    names: NameIndex
    size: int = 0
    """The bytes of its names."""
    newest: tuple[Head, bytes] | None = None
    """Its newest commit at the last search of all modules, and the id of the root's own tree."""


class AllHits(NamedTuple):
    """The results of a search in all modules."""

    modules: dict[str, ModuleHits]
    """The modules with hits, and those that were not searched to the end, by name."""
    next: str | None
    """The module at which a further search has to start, for lack of time; None for the last."""


def encode_text(text: str) -> bytes:
    """Return the bytes to search for."""
    return text.encode(errors="surrogateescape")[:_TEXT_BYTES]


class Searcher:
    """Searches in the commits of all modules."""

    def __init__(self, most_bytes: int = _KEPT_BYTES, seconds: float = _SECONDS) -> None:
        """Keep so many bytes of names; a search takes so many seconds."""
        self._most_bytes = most_bytes
        self._seconds = seconds
        self._modules: dict[Path, _Module] = {}
        """By repository; the last searched is the last."""
        self._lock = Lock()

    @property
    def kept_bytes(self) -> int:
        """The bytes of names that are kept, about."""
        return sum(each.size for each in self._modules.values())

    def search(
        self,
        repository: Path,
        snapshot: Snapshot,
        path: RelPath,
        text: bytes,
        most: int = ROWS,
        end: float | None = None,
    ) -> Hits:
        """Find at most `most` entries below a directory with `text` in their name.

        With a slash it is compared with paths.  With `*` or `?`, the whole name has to match, or
        the end of the path.  ASCII letters are compared without case.  `end`: the monotonic time of
        the limit, by default that of all searches.  Raises `FormatError` if metadata are damaged.
        """
        end = time.monotonic() + self._seconds if end is None else end
        module = self._find(repository)
        try:
            batch, limit, size = module.names.search(
                snapshot.arguments, (path, text, most), end - time.monotonic()
            )
        except Exception:
            # What it has read by then is not counted.
            with self._lock:
                self._modules.pop(repository, None)
            raise
        self._keep(repository, module._replace(size=size))
        return Hits(batch_entries(batch), limit)

    def search_all(self, modules: Mapping[str, Path], text: bytes, start: str) -> AllHits:
        """Search in the newest commits of the modules, by name, that are not before `start`.

        A module that has no commit or is damaged is left out.  Progress is certain: the first one
        is not searched again.
        """
        end = time.monotonic() + self._seconds
        hits_by_module: dict[str, ModuleHits] = {}
        names = sorted(name for name in modules if name >= start)
        for name, later in zip(names, [*names[1:], None], strict=False):
            try:
                head, snapshot = self._open_newest(modules[name])
                hits = self.search(modules[name], snapshot, ROOT, text, _MODULE_HITS, end)
            except HuaiError:
                continue
            if hits.entries or hits.limit:
                hits_by_module[name] = ModuleHits(head.info.serial, hits)
            if hits.limit == "time" or time.monotonic() > end:
                # The first one had all the time that there is.
                is_over = hits.limit != "time" or name == names[0]
                return AllHits(hits_by_module, later if is_over else name)
        return AllHits(hits_by_module, None)

    def _open_newest(self, repository: Path) -> tuple[Head, Snapshot]:
        """Open the newest commit, which is read if the branch has moved; 404 before the first."""
        module, commit = self._find(repository), read_branch(repository)
        newest = module.newest
        if newest is None or newest[0].commit != commit:
            opened = open_commit(repository, LATEST)
            newest = opened.head, opened.snapshot.tree
            self._keep(repository, module._replace(newest=newest))
        head, tree = newest
        # What is read through an open repository is cached there, which would be much for many.
        return head, Snapshot(Repository(repository), tree, head.info.totals.entries)

    def _find(self, repository: Path) -> _Module:
        """Return what is kept of a module, or an empty one, which `_keep` has to store."""
        with self._lock:
            return self._modules.get(repository) or _Module(NameIndex(self._most_bytes))

    def _keep(self, repository: Path, module: _Module) -> None:
        """Keep what was read of a module for later searches; drop others if it is too much."""
        with self._lock:
            self._modules.pop(repository, None)
            self._modules[repository] = module
            while self.kept_bytes > self._most_bytes:
                del self._modules[next(iter(self._modules))]
