"""The pages about commits: directories and files, searches, and comparisons.

Expensive reads run in threads, a limited number at a time, half of them for one address: others
wait their turn, and get status 503 if it does not come.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from fastapi import Response

from huai_schema.diff.changes import Moved
from huai_schema.diff.diff import Difference
from huai_schema.entries import File
from huai_schema.paths import RelPath, ancestors, parent
from huai_server.http.asgi.errors import HttpError
from huai_server.http.asgi.limiter import Limiter
from huai_server.http.pages.reading import (
    KINDS,
    ROWS,
    Opened,
    differences,
    kind_of,
    neighbours,
    open_commit,
    read_directory,
    search,
    versions,
)
from huai_server.http.pages.recipes import download_urls
from huai_server.http.pages.rendering import Page

if TYPE_CHECKING:
    from huai_schema.entries import Entry

_READERS, _LINE, _WAIT_SECONDS = 2, 32, 20.0
SEARCHED_BYTES = 200
"""The most bytes of a text to search for."""
_T = TypeVar("_T")


class Browser:
    """The pages about the commits of one server."""

    def __init__(self) -> None:
        self._turns = Limiter(_READERS, _LINE, _WAIT_SECONDS)

    async def tree_page(
        self, page: Page, repository: Path, location: "Location", view: "View"
    ) -> Response:
        """Return the page of a directory or a file of a commit, or of a search below it."""
        needle = view.text.encode(errors="surrogateescape")[:SEARCHED_BYTES]

        def read() -> dict[str, object]:
            opened = open_commit(repository, location.commit)
            values: dict[str, object] = {"head": opened.head, "text": view.text}
            if needle:
                return values | {"hits": search(opened, location.path, needle)}
            return values | _directory_or_file(repository, opened, location, view)

        values = await self.read(page.client, read)
        template = "search.html" if needle else "entry.html" if "entry" in values else "tree.html"
        above = [each for each in ancestors(location.path)[::-1] if each]
        common = {"name": location.name, "path": location.path, "above": above}
        return page.render(template, {**common, "commit": location.commit, **values})

    async def diff_page(
        self, page: Page, repository: Path, name: str, commits: str, view: "View"
    ) -> Response:
        """Return the page of the differences between the commits `OLD..NEW`."""
        before, dots, after = commits.partition("..")
        if not dots:
            raise HttpError(404, "there is nothing at this address")

        def read() -> dict[str, object]:
            old, new = open_commit(repository, before), open_commit(repository, after)
            part = differences(old, new, view.start, view.kind)
            return {
                "old": old.head,
                "new": new.head,
                "around": neighbours(repository, old.head, new.head),
                "rows": [_row(row) for row in part.rows],
                "touched": part.touched,
                "later": part.later,
            }

        values = await self.read(page.client, read)
        return page.render(
            "diff.html",
            {"name": name, "both": commits, "kind": view.kind, "kinds": KINDS, **values},
        )

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


class View(NamedTuple):
    """The part of a page that a request wants."""

    start: int = 0
    """The number of the first row."""
    text: str = ""
    """The text to search for; empty for no search."""
    kind: str = "all"
    """One of `KINDS`."""
    history: bool = False
    """True to read the versions of a file too."""
    content_urls: Sequence[str] = ()
    """The URLs of the module's content that replace those of its commits."""


def _directory_or_file(
    repository: Path, opened: Opened, location: Location, view: View
) -> dict[str, object]:
    """Return a leaf, or a part of a directory, as the template needs it; status 404."""
    path, start = location.path, view.start
    entry = opened.snapshot.leaf(path) if path else None
    if entry is not None:
        urls = view.content_urls or opened.descriptor.content_urls
        past = versions(repository, path) if view.history else None
        return {"entry": entry, "urls": download_urls(urls, path), "versions": past}
    directory = read_directory(opened, path, start)
    if directory is None:
        raise HttpError(404, "the commit names no such path")
    later = start + ROWS if start + ROWS < directory.total else None
    return {"directory": directory, "start": start, "later": later, "rows": ROWS}


def _row(difference: Difference) -> dict[str, object]:
    """Return a difference as the template needs it."""
    if isinstance(difference, Moved):
        path, before, attributes = difference.new, difference.old, frozenset[str]()
        entries: tuple[Entry | None, ...] = (None, None)
    else:
        path, before, attributes = difference.path, None, difference.attributes
        entries = difference.old, difference.new
    return {
        "what": kind_of(difference),
        "path": path,
        "folder": parent(path) if path else None,
        "before": before,
        "attributes": sorted(attributes),
        "sizes": [each.size if isinstance(each, File) else None for each in entries],
    }
