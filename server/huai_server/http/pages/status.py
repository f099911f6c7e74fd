"""The front page and the page of one module.

Reads repositories in threads.  A damaged one is a line of its page, and hides no other.
"""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from fastapi import Response

from huai_schema.errors import HuaiError
from huai_server.http.pages.growth import line
from huai_server.http.pages.history import KEPT, RECENT, Recent, newest_commits
from huai_server.http.pages.rendering import Page
from huai_server.store.repository import Head

_ROWS = 100
"""Commits on one page."""
_log = logging.getLogger(__name__)


class ModuleRow(NamedTuple):
    """A module as a page shows it."""

    name: str
    commits: tuple[Head, ...] = ()
    """The newest, newest first; none before the first one."""
    growth: str = ""
    """Its size over these commits, as points of a line."""
    problem: bool = False
    """Whether its metadata cannot be read."""


async def front_page(page: Page, modules: Mapping[str, Path], recent: Recent) -> Response:
    """All modules."""
    rows = [await _row(name, modules[name], recent) for name in sorted(modules)]
    totals = [row.commits[0].info.totals for row in rows if row.commits]
    values = {
        "modules": rows,
        "entries": sum(each.entries for each in totals),
        "bytes": sum(each.bytes for each in totals),
    }
    return page.render("front.html", values)


async def module_page(
    page: Page, name: str, repository: Path, recent: Recent, before: int | None
) -> Response:
    """One module; its commits below the serial `before`, or from the newest on."""
    row = await _row(name, repository, recent)
    newest = row.commits[0] if row.commits else None
    older = None
    if newest is not None and (before is not None or len(row.commits) == RECENT):
        found = await asyncio.to_thread(newest_commits, repository, KEPT)
        wanted = [each for each in found if before is None or each.info.serial < before]
        row = row._replace(commits=tuple(wanted[:_ROWS]))
        older = wanted[_ROWS - 1].info.serial if len(wanted) > _ROWS else None
    return page.render("module.html", {"module": row, "newest": newest, "older": older})


async def _row(name: str, repository: Path, recent: Recent) -> ModuleRow:
    try:
        commits = await recent.read(repository)
    except HuaiError as error:
        # The message holds paths of this machine, so only the log gets it.
        _log.warning("%s: %s", name, error.message)
        return ModuleRow(name, problem=True)
    oldest_first = commits[::-1]
    sizes = [each.info.totals.bytes for each in oldest_first]
    return ModuleRow(name, commits, line([each.time for each in oldest_first], sizes))
