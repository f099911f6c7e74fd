"""The addresses of reports about mirrors.

Each response has an ETag.  A client that may not see a module sees none of its mirrors.
"""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query, Request, Response

from huai_schema.errors import HuaiError
from huai_server.http.access import Access
from huai_server.http.api import ErrorModel
from huai_server.http.asgi.conditions import respond
from huai_server.http.asgi.errors import HttpError
from huai_server.http.mirrors.answers import (
    AllMirrorsModel,
    HeldModule,
    ModuleMirrorsModel,
    as_text,
    mirmon,
    mirrorz,
    module_mirrors,
    offered_urls,
    tunasync,
)
from huai_server.http.mirrors.known import KnownMirrors
from huai_server.http.module_facts import ModuleFacts
from huai_server.mirrors.states import MirrorState

_TEXT, _JSON = "text/plain; charset=utf-8", "application/json"
_ALL: dict[int | str, dict[str, object]] = {
    304: {"description": "it is the version that the request names"},
}
_FOUND: dict[int | str, dict[str, object]] = {**_ALL, 404: {"model": ErrorModel}}
_PLAIN: dict[int | str, dict[str, object]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
    **_FOUND,
}
_Country = Annotated[str, Query(description="only mirrors in this country, by its code")]
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class _Reports:
    """The reports of the routes."""

    def __init__(self, facts: ModuleFacts, access: Access, known_mirrors: KnownMirrors) -> None:
        self._facts = facts
        self._access = access
        self._known_mirrors = known_mirrors

    async def of_module(self, name: str, repository: Path) -> ModuleMirrorsModel:
        """Return the mirrors of a module, without a check of access.

        Raises `HuaiError` if the repository is damaged.
        """
        head = await self._facts.head(name)
        serial = head.info.serial if head else 0
        return module_mirrors(name, serial, await self._known_mirrors.states(name, repository))

    async def of_each(
        self, request: Request, read: Callable[[str, Path], Awaitable[_T]]
    ) -> list[_T]:
        """Return the results of `read` for the visible modules, by name.

        A module for which `read` raises a `HuaiError` is logged and left out.
        """
        results = []
        for name, repository in sorted(self._access.modules(request.scope).items()):
            try:
                results.append(await read(name, repository))
            except HuaiError as error:
                # The message holds paths of this machine, so only the log gets it.
                _log.warning("%s: %s", name, error.message)
        return results

    async def states(self, request: Request, name: str) -> tuple[MirrorState, ...]:
        """Return the states of a module's mirrors; raises `HttpError` unless it is visible."""
        return await self._known_mirrors.states(name, self._access.repository(request.scope, name))

    async def held_modules(self, request: Request, mirror: str) -> list[HeldModule]:
        """Return the modules of one mirror that the client may see, by name; raises 404 if empty.

        Modules that cannot be read are logged and left out.
        """

        async def of_module(name: str, repository: Path) -> HeldModule | None:
            """Return a module of the mirror, or None."""
            states = await self._known_mirrors.states(name, repository)
            state = next((each for each in states if each.mirror == mirror), None)
            if state is None:
                return None
            head = await self._facts.head(name)
            return HeldModule(name, head.info.totals.bytes, state) if head else None

        modules = [each for each in await self.of_each(request, of_module) if each]
        if not modules:
            raise HttpError(404, "no such mirror", hint="see /api/v1/mirrors for their names")
        return modules


def router(facts: ModuleFacts, access: Access, known_mirrors: KnownMirrors) -> APIRouter:
    """Return the routes of the reports about mirrors, below `/api/v1`."""
    routes = APIRouter(prefix="/api/v1", tags=["mirrors"])
    reports = _Reports(facts, access, known_mirrors)

    @routes.get("/mirrors", response_model=AllMirrorsModel, responses=_ALL)
    async def all_mirrors(request: Request) -> Response:
        """The mirrors of each module, and what they hold."""
        body = AllMirrorsModel(modules=await reports.of_each(request, reports.of_module))
        return respond(request, body.model_dump_json(), _JSON)

    @routes.get("/modules/{name}/mirrors", response_model=ModuleMirrorsModel, responses=_FOUND)
    async def mirrors(name: str, request: Request) -> Response:
        """The serial of a module that each mirror holds, since when, and how far it is behind."""
        body = await reports.of_module(name, access.repository(request.scope, name))
        return respond(request, body.model_dump_json(), _JSON)

    @routes.get("/modules/{name}/mirrorlist", response_class=Response, responses=_PLAIN)
    async def mirrorlist(name: str, request: Request, country: _Country = "") -> Response:
        """URLs of a module, one a line: of mirrors that are near enough, the freshest first."""
        places = offered_urls(await reports.states(request, name))
        urls = [url for url, each in places.items() if country.upper() in {"", each}]
        return respond(request, "".join(f"{url}\n" for url in urls), _TEXT)

    @routes.get("/modules/{name}/mirmon", response_class=Response, responses=_PLAIN)
    async def mirmon_state(name: str, request: Request) -> Response:
        """All URLs of a module, as mirmon's state file has them."""
        return respond(request, mirmon(await reports.states(request, name)), _TEXT)

    @routes.get("/mirrors/{mirror}/mirrorz.json", responses=_FOUND)
    async def mirrorz_site(mirror: str, request: Request) -> Response:
        """One mirror as a site of MirrorZ; 404 if it names no web server."""
        site = mirrorz(mirror, await reports.held_modules(request, mirror))
        if site is None:
            raise HttpError(404, "this mirror names no web server")
        return respond(request, as_text(site), _JSON)

    @routes.get("/mirrors/{mirror}/tunasync.json", responses=_FOUND)
    async def tunasync_jobs(mirror: str, request: Request) -> Response:
        """The modules of one mirror, as jobs of tunasync."""
        held_modules = await reports.held_modules(request, mirror)
        return respond(request, as_text(tunasync(held_modules)), _JSON)

    return routes
