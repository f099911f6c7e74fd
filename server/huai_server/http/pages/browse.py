"""The pages about commits: directories and files, searches, and comparisons.

Expensive reads run in threads, a limited number at a time, half of them for one address: others
wait their turn, and get status 503 if it does not come.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from fastapi import Response

from huai_schema.diff.changes import Change, Moved
from huai_schema.entries import File
from huai_schema.paths import RelPath, ancestors
from huai_server.http.asgi.errors import HttpError
from huai_server.http.asgi.limiter import Limiter
from huai_server.http.pages.reading import (
    ROWS,
    Opened,
    differences,
    open_commit,
    read_directory,
    search,
)
from huai_server.http.pages.rendering import Page

_READERS, _LINE, _WAIT_SECONDS = 2, 32, 20.0
_SEARCHED_BYTES = 200
_T = TypeVar("_T")


class Browser:
    """The pages about the commits of one server."""

    def __init__(self) -> None:
        self._turns = Limiter(_READERS, _LINE, _WAIT_SECONDS)

    async def tree_page(
        self, page: Page, repository: Path, location: "Location", start: int, text: str
    ) -> Response:
        """Return the page of a directory or a file of a commit, or of a search below it."""
        needle = text.encode(errors="surrogateescape")[:_SEARCHED_BYTES]

        def read() -> dict[str, object]:
            opened = open_commit(repository, location.commit)
            values: dict[str, object] = {"head": opened.head, "text": text}
            if needle:
                return values | {"hits": search(opened, location.path, needle)}
            return values | _directory_or_file(opened, location.path, start)

        values = await self.read(page.client, read)
        template = "search.html" if needle else "entry.html" if "entry" in values else "tree.html"
        above = [each for each in ancestors(location.path)[::-1] if each]
        common = {"name": location.name, "path": location.path, "above": above}
        return page.render(template, {**common, **values})

    async def diff_page(
        self, page: Page, repository: Path, name: str, commits: str, start: int
    ) -> Response:
        """Return the page of the differences between the commits `OLD..NEW`."""
        before, dots, after = commits.partition("..")
        if not dots:
            raise HttpError(404, "there is nothing at this address")

        def read() -> dict[str, object]:
            old, new = open_commit(repository, before), open_commit(repository, after)
            part = differences(old, new, start)
            values = {"old": old.head, "new": new.head, "rows": [_row(row) for row in part.rows]}
            return {**values, "touched": part.touched, "later": part.later}

        values = await self.read(page.client, read)
        return page.render("diff.html", {"name": name, "both": commits, **values})

    async def read(self, client: str, work: Callable[[], _T]) -> _T:
        """Return what `work` reads, in its turn; `client` is the address of the client."""
        async with self._turns.slot(client):
            return await asyncio.to_thread(work)


class Location(NamedTuple):
    """The address of an entry: a path in a commit of a module."""

    name: str
    commit: str
    """A serial, or the beginning of an id."""
    path: RelPath


def _directory_or_file(opened: Opened, path: RelPath, start: int) -> dict[str, object]:
    """Return a leaf, or a part of a directory, as the template needs it; status 404."""
    entry = opened.snapshot.leaf(path) if path else None
    if entry is not None:
        return {"entry": entry}
    directory = read_directory(opened, path, start)
    if directory is None:
        raise HttpError(404, "the commit names no such path")
    later = start + ROWS if start + ROWS < directory.total else None
    return {"directory": directory, "start": start, "later": later, "rows": ROWS}


def _row(difference: Change | Moved) -> dict[str, object]:
    """Return a difference as the template needs it."""
    if isinstance(difference, Moved):
        moved = {"what": "moved", "path": difference.new, "before": difference.old}
        return {**moved, "attributes": [], "sizes": None}
    old, new = difference.old, difference.new
    kind = "added" if old is None else "removed" if new is None else "changed"
    sizes = [each.size if isinstance(each, File) else None for each in (old, new)]
    return {
        "what": kind,
        "path": difference.path,
        "before": None,
        "attributes": sorted(difference.attributes),
        "sizes": sizes,
    }
