"""The pages about commits: directories and files, searches, and comparisons.

Expensive reads run in threads, a limited number at a time, half of them for one address: others
wait their turn, and get status 503 if it does not come.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from fastapi import Response

from huai_schema.diff.changes import Moved
from huai_schema.diff.diff import Difference
from huai_schema.entries import File
from huai_schema.paths import RelPath, ancestors, parent
from huai_server.http.asgi.errors import HttpError
from huai_server.http.asgi.limiter import Limiter
from huai_server.http.pages.holders import Holder, choose_url, holders
from huai_server.http.pages.reading import (
    KINDS,
    ROWS,
    SORTED_NAMES,
    Opened,
    differences,
    kind_of,
    open_both,
    open_commit,
    read_place,
    summarize,
    versions,
)
from huai_server.http.pages.recipes import download_urls
from huai_server.http.pages.rendering import Page
from huai_server.http.pages.search import AllHits, Searcher, encode_text
from huai_server.http.pages.totals import TotalsCounter
from huai_server.mirrors.states import MirrorState
from huai_server.store.block_indices import block_index_path
from huai_server.store.repository import Head

if TYPE_CHECKING:
    from huai_schema.entries import Entry

_READERS, _LINE, _WAIT_SECONDS = 2, 32, 20.0
_README_LENGTH = 8000
"""The most characters of a README on a page."""
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_T = TypeVar("_T")


class Browser:
    """The pages about the commits of one server."""

    def __init__(self, read_small: Callable[[str, File, str], Awaitable[bytes | None]]) -> None:
        """`read_small` is that of `ContentApp`."""
        self._read_small = read_small
        self.searcher = Searcher()
        self.totals = TotalsCounter()
        self._turns = Limiter(_READERS, _LINE, _WAIT_SECONDS)

    async def tree_page(
        self, page: Page, repository: Path, location: "Location", view: "View"
    ) -> Response:
        """Return the page of a directory or a file of a commit, or of a search below it."""
        needle = encode_text(view.text)

        def read() -> dict[str, object]:
            """Return the values of the page, read from the repository."""
            opened = open_commit(repository, location.commit)
            values: dict[str, object] = {"head": opened.head, "text": view.text}
            if needle:
                hits = self.searcher.search(repository, opened.snapshot, location.path, needle)
                return values | {"hits": hits}
            return values | _directory_or_file(repository, opened, location, view, self.totals)

        values = await self.read(page.client, read)
        if isinstance(file := values.get("readme"), File):
            content = await self._read_small(location.name, file, page.client)
            values["readme_text"] = _as_text(content or b"")
        template = "search.html" if needle else "entry.html" if "entry" in values else "tree.html"
        path = location.path
        start = len(path) + 1 if path else 0
        common: dict[str, object] = {
            "name": location.name,
            "commit": location.commit,
            "path": path,
            "above": [each for each in ancestors(path)[::-1] if each],
            "below": lambda found: page.below(found[start:]),
        }
        return page.render(template, {**common, **values})

    async def download(
        self, page: Page, repository: Path, location: "Location", view: "View", country: str
    ) -> Response:
        """Redirect to a mirror that holds a file of a commit, else to a content URL.

        Mirrors in `country` go first.  Raises 404 without such an address.
        """

        def read() -> str:
            opened = open_commit(repository, location.commit)
            place = read_place(opened, location.path, self.totals)
            entry = place.entries[0] if place.total is None else None
            if not isinstance(entry, File):
                raise HttpError(404, "the commit names no such file")
            urls = download_urls(view.content_urls or opened.descriptor.content_urls, entry.path)
            urls = [each for each in urls if each.isascii()]  # others are no valid header
            url = choose_url(_holders(repository, opened, entry, view), country)
            if url is None and not urls:
                raise HttpError(404, "no mirror serves this file to browsers")
            return url or urls[0]

        url = await self.read(page.client, read)
        return Response(status_code=302, headers={"Location": url, "Cache-Control": "no-store"})

    async def search_page(self, page: Page, modules: Mapping[str, Path], text: str) -> Response:
        """Return the page of a search in the newest commits of all these modules."""
        results = await self.search_all(page.client, modules, text)
        return page.render("search_all.html", {"text": text, "results": results})

    async def search_all(
        self, client: str, modules: Mapping[str, Path], text: str, start: str = ""
    ) -> AllHits:
        """Search in the newest commits of all these modules, as `Searcher` does, in its turn.

        Finds nothing for an empty text.
        """
        needle = encode_text(text)
        if not needle:
            return AllHits({}, None)
        return await self.read(client, lambda: self.searcher.search_all(modules, needle, start))

    async def diff_page(
        self, page: Page, repository: Path, name: str, commits: str, view: "View"
    ) -> Response:
        """Return the page of the differences between the commits `OLD..NEW`; 404 for other text."""

        def read() -> dict[str, object]:
            comparison = open_both(repository, commits)
            part = differences(comparison, view.start, view.kind)
            return {
                "summary": summarize(comparison),
                "old": comparison.old.head,
                "new": comparison.new.head,
                "around": (comparison.before, comparison.after),
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
    past: Sequence[Head] | None = None
    """The commits of which a file's versions are read; None for no versions."""
    content_urls: Sequence[str] = ()
    """The URLs of the module's content that replace those of its commits."""
    order: str = ""
    """A key of `ORDERS`; by name for anything else."""
    states: Sequence[MirrorState] = ()
    """The mirrors of the module."""
    commits: Sequence[Head] = ()
    """The newest commits, in which files of mirrors are looked up."""


def _directory_or_file(
    repository: Path, opened: Opened, location: Location, view: View, counter: TotalsCounter
) -> dict[str, object]:
    """Return a leaf, or a part of a directory, as the template needs it."""
    path = location.path
    place = read_place(opened, path, counter, view.start, view.order)
    if place.total is not None:
        order = view.order if place.total <= SORTED_NAMES else None
        values = {"directory": place, "start": view.start, "rows": ROWS, "order": order}
        return {**values, "readme": place.readme, "totals": place.totals}
    entry = place.entries[0]
    urls = download_urls(view.content_urls or opened.descriptor.content_urls, path)
    past = None if view.past is None else versions(repository, path, view.past)
    holding = _holders(repository, opened, entry, view)
    values = {"entry": entry, "urls": urls, "versions": past, "holders": holding}
    return {**values, "has_blocks": _has_block_index(repository, entry)}


def _holders(repository: Path, opened: Opened, entry: "Entry", view: View) -> list[Holder]:
    """Return the mirrors that hold a file of the opened commit."""
    if not isinstance(entry, File):
        return []
    commits = {head.commit: head for head in (opened.head, *view.commits)}
    return holders(repository, entry.path, entry, view.states, commits)


def _has_block_index(repository: Path, entry: "Entry") -> bool:
    """True if the repository has the block index of a file."""
    digest = entry.digest if isinstance(entry, File) else None
    return digest is not None and block_index_path(repository, digest).exists()


def _as_text(content: bytes) -> str:
    """Return the beginning of a plain text in UTF-8; empty for other content."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return ""
    end = "\n…" if len(text) > _README_LENGTH else ""
    return "" if _BINARY.search(text) else text[:_README_LENGTH] + end


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
