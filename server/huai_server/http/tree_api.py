"""The JSON API of what commits hold: commits, directories, searches and differences.

The pages for people show the same; both read by `pages.reading`, in the same turns.  Paths are
JSON strings in UTF-8, with other bytes as lone surrogates (Python's `surrogateescape`), so that a
program gets the exact name back.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from huai_schema.diff.changes import Moved
from huai_schema.diff.diff import Difference
from huai_schema.entries import Directory, Entry, entry_values
from huai_schema.paths import path_as_text
from huai_server.http.access import Access
from huai_server.http.any_path import parse_number, requested_path
from huai_server.http.api import ErrorModel, Model
from huai_server.http.asgi.conditions import respond
from huai_server.http.pages.browse import Browser
from huai_server.http.pages.history import commits_below
from huai_server.http.pages.reading import (
    ROWS,
    differences,
    kind_of,
    open_both,
    open_commit,
    read_place,
)
from huai_server.http.pages.search import Hits, encode_text
from huai_server.http.pages.totals import DirectoryTotals
from huai_server.store.repository import Head

_ABOVE = 7
_COMPLETE = "false if a search ended at its limit of hits or of time"
_NEXT = "`start` of the next part; null for the last one"
_COMMIT = "a serial, the beginning of an id, or `latest`"


class CommitModel(Model):
    """A commit, with what it changed."""

    serial: int
    commit: str
    committed: int = Field(description="seconds since the epoch")
    entries: int
    bytes: int
    added: int
    removed: int
    changed: int
    moved: int
    new_bytes: int | None = Field(
        description="sizes of files that are new or have other content; null: not stated"
    )


class CommitsModel(Model):
    """Commits of a module, newest first."""

    commits: list[CommitModel]
    before: int | None = Field(description="`before` of the next part; null for the last one")


class EntryModel(Model):
    """A file, directory or symlink; fields that its type does not have are missing."""

    path: str
    type: str = Field(description="file, directory or symlink")
    mtime_ns: int
    mode: int
    owner: str
    group: str
    size: int | None = Field(default=0, description="of a file, or of the files below a directory")
    files: int | None = Field(
        default=0, description="below a directory; null: not counted yet, or in a search"
    )
    link: str | None = Field(default=None, description="the first path of a hardlink group")
    digest: str | None = Field(default=None, description="BLAKE3-256 in hex; null: not computed")
    target: str = Field(default="", description="of a symlink")


class EntriesModel(Model):
    """A part of a directory, a search, or one entry."""

    serial: int
    entries: list[EntryModel]
    next: int | None = Field(description=_NEXT)
    complete: bool = Field(description=_COMPLETE)


class ModuleHitsModel(Model):
    """The entries found in the newest commit of a module: 20 at most."""

    module: str
    serial: int
    entries: list[EntryModel]
    complete: bool = Field(description=_COMPLETE)


class SearchModel(Model):
    """The results of a search in all modules, by name, without those searched in vain."""

    modules: list[ModuleHitsModel]
    next: str | None = Field(
        description="`start` of the next part, for which no time was left; null for the last one"
    )


class DifferenceModel(Model):
    """A path that differs between two commits."""

    change: str = Field(description="added, removed, changed, moved; touched: a directory's time")
    path: str
    source: str | None = Field(description="the former path of a moved directory")
    attributes: list[str] = Field(description="those that differ, of a changed path")
    old: dict[str, Any] | None
    new: dict[str, Any] | None


class DifferencesModel(Model):
    """A part of the differences between two commits."""

    old: int = Field(description="a serial")
    new: int = Field(description="a serial")
    differences: list[DifferenceModel]
    next: int | None = Field(description=_NEXT)


_ANSWERS: Mapping[int | str, dict[str, Any]] = {
    304: {"description": "it is the version that the request names"},
    404: {"model": ErrorModel},
}


def router(access: Access, browser: Browser) -> APIRouter:
    """Return the routes below `/api/v1`; `browser` limits how many read at a time."""
    routes = APIRouter(prefix="/api/v1", tags=["commits"])

    async def answer(
        request: Request, name: str, read: Callable[[Path], dict[str, Any]]
    ) -> Response:
        """Return what `read` reads from the module's repository, as JSON."""
        repository = access.repository(request.scope, name)
        values = await browser.read(access.client(request.scope), lambda: read(repository))
        return respond(request, json.dumps(values), "application/json")

    @routes.get("/modules/{name}/commits", response_model=CommitsModel, responses={**_ANSWERS})
    async def commits(name: str, request: Request, before: str = "") -> Response:
        """The newest commits, or those below the serial `before`."""
        below = parse_number(before)

        def read(repository: Path) -> dict[str, Any]:
            heads, older = commits_below(repository, below, ROWS)
            return {"commits": [*map(_commit_values, heads)], "before": older}

        return await answer(request, name, read)

    @routes.get(
        "/modules/{name}/tree/{commit}", response_model=EntriesModel, responses={**_ANSWERS}
    )
    @routes.get(
        "/modules/{name}/tree/{commit}/{path:any_text}",
        response_model=EntriesModel,
        responses={**_ANSWERS},
    )
    async def tree(
        name: str, commit: str, request: Request, start: str = "", q: str = ""
    ) -> Response:
        """A file, or a part of a directory; with `q` a search below it."""
        path = requested_path(request.scope["raw_path"].removesuffix(b"/"), _ABOVE)
        needle = encode_text(q)

        def read(repository: Path) -> dict[str, Any]:
            opened = open_commit(repository, commit)
            if needle:
                hits = browser.searcher.search(repository, opened.snapshot, path, needle)
                return {"serial": opened.head.info.serial, **_hits_values(hits), "next": None}
            place = read_place(opened, path, browser.totals, parse_number(start))
            return {
                "serial": opened.head.info.serial,
                "entries": [
                    _entry_values(each, place.totals.get(each.path)) for each in place.entries
                ],
                "next": place.later,
                "complete": True,
            }

        return await answer(request, name, read)

    @routes.get(
        "/modules/{name}/diff/{commits}", response_model=DifferencesModel, responses={**_ANSWERS}
    )
    async def diff(
        name: str, commits: str, request: Request, start: str = "", kind: str = "all"
    ) -> Response:
        """The differences between the commits `OLD..NEW`, of one kind or of all.

        Each is a serial, the beginning of an id, `latest`, or a time in UTC such as `2026-11-01` or
        `2026-11-01T12:00`, for the last commit before it; without NEW, the latest.
        """

        def read(repository: Path) -> dict[str, Any]:
            comparison = open_both(repository, commits)
            part = differences(comparison, parse_number(start), kind)
            return {
                "old": comparison.old.head.info.serial,
                "new": comparison.new.head.info.serial,
                "differences": [*map(_difference_values, part.rows)],
                "next": part.later,
            }

        return await answer(request, name, read)

    @routes.get("/search", response_model=SearchModel, responses={304: _ANSWERS[304]})
    async def search(request: Request, q: str = "", start: str = "") -> Response:
        """Entries with `q` in their name, in the newest commits of all modules.

        With a slash it is compared with paths.  With `*` or `?`, the whole name has to match, or
        the end of the path.  ASCII letters are compared without case.  `start`: the first module.
        """
        client, modules = access.client(request.scope), access.modules(request.scope)
        results = await browser.search_all(client, modules, q, start)
        hits = [
            {"module": name, "serial": each.serial, **_hits_values(each.hits)}
            for name, each in results.modules.items()
        ]
        text = json.dumps({"modules": hits, "next": results.next})
        return respond(request, text, "application/json")

    return routes


def _hits_values(hits: Hits) -> dict[str, Any]:
    """Return the results of a search, for JSON."""
    return {"entries": [*map(_entry_values, hits.entries)], "complete": hits.limit is None}


def _entry_values(entry: Entry, below: DirectoryTotals | None = None) -> dict[str, object]:
    """Return an entry, for JSON; `below` has the totals of a directory, None if not known."""
    values = {"path": path_as_text(entry.path), **(entry_values(entry) or {})}
    if isinstance(entry, Directory):
        files, size = (below.files, below.bytes) if below else (None, None)
        values |= {"size": size, "files": files}
    return values


def _commit_values(head: Head) -> dict[str, Any]:
    """Return a commit, for JSON."""
    return {
        "serial": head.info.serial,
        "commit": head.commit,
        "committed": head.time,
        "entries": head.info.totals.entries,
        "bytes": head.info.totals.bytes,
        **head.info.counts._asdict(),
    }


def _difference_values(difference: Difference) -> dict[str, Any]:
    """Return a difference, for JSON."""
    if isinstance(difference, Moved):
        path, old, new = difference.new, None, None
        source, attributes = path_as_text(difference.old), frozenset[str]()
    else:
        path, old, new = difference.path, difference.old, difference.new
        source, attributes = None, difference.attributes
    return {
        "change": kind_of(difference),
        "path": path_as_text(path),
        "source": source,
        "attributes": sorted(attributes),
        "old": entry_values(old),
        "new": entry_values(new),
    }
