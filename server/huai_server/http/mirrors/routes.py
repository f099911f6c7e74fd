"""The addresses at which mirrors are told of.

Each answer has an ETag; whoever may not see a module learns of no mirror of it.
"""

import logging
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from fastapi import APIRouter, Request, Response

from huai_schema.errors import HuaiError
from huai_server.http.access import Access
from huai_server.http.api import ErrorModel, Heads
from huai_server.http.asgi.conditions import names_weakly
from huai_server.http.asgi.errors import HttpError
from huai_server.http.mirrors.answers import (
    AllMirrorsModel,
    Held,
    ModuleMirrorsModel,
    as_text,
    mirmon,
    mirrorz,
    module_mirrors,
    offered_urls,
    tunasync,
)
from huai_server.http.mirrors.who_holds import WhoHolds
from huai_server.mirrors.standing import Standing

_TEXT, _JSON = "text/plain; charset=utf-8", "application/json"
_ALL: dict[int | str, dict[str, object]] = {
    304: {"description": "it is as the request names it"},
}
_FOUND: dict[int | str, dict[str, object]] = {**_ALL, 404: {"model": ErrorModel}}
_PLAIN: dict[int | str, dict[str, object]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
    **_FOUND,
}
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class _Teller:
    """What the routes tell."""

    def __init__(self, heads: Heads, access: Access, who: WhoHolds) -> None:
        self._heads = heads
        self._access = access
        self._who = who

    async def of_module(self, name: str, repository: Path) -> ModuleMirrorsModel:
        """Who holds what of a module."""
        head = await self._heads.read(name)
        serial = head.info.serial if head else 0
        return module_mirrors(name, serial, await self._who.standings(name, repository))

    async def of_all(self, request: Request) -> AllMirrorsModel:
        """The same of all that the asker may see."""
        return AllMirrorsModel(modules=await self._of_each(request, self.of_module))

    async def _of_each(
        self, request: Request, ask: Callable[[str, Path], Awaitable[_T]]
    ) -> list[_T]:
        """What `ask` says of each module; a damaged repository must not hide the others."""
        found = []
        for name, repository in sorted(self._access.modules(request.scope).items()):
            try:
                found.append(await ask(name, repository))
            except HuaiError as error:
                # The message holds paths of this machine, so only the log gets it.
                _log.warning("%s: %s", name, error.message)
        return found

    async def standings(self, request: Request, name: str) -> tuple[Standing, ...]:
        """The mirrors of a module that the asker may see."""
        return await self._who.standings(name, self._access.repository(request.scope, name))

    async def held(self, request: Request, mirror: str) -> list[Held]:
        """What one mirror holds, as far as the asker may see it."""

        async def of_module(name: str, repository: Path) -> Held | None:
            standings = await self._who.standings(name, repository)
            one = next((each for each in standings if each.mirror == mirror), None)
            head = await self._heads.read(name) if one else None
            return Held(name, head.info.totals.bytes, one) if one and head else None

        found = [each for each in await self._of_each(request, of_module) if each]
        if not found:
            raise HttpError(404, "no such mirror", hint="see /api/v1/mirrors for their names")
        return found


def router(heads: Heads, access: Access, who: WhoHolds) -> APIRouter:
    """The routes below `/api/v1`."""
    routes = APIRouter(prefix="/api/v1", tags=["mirrors"])
    teller = _Teller(heads, access, who)
    _add_own(routes, teller, access)
    _add_lists(routes, teller)
    _add_sites(routes, teller)
    return routes


def _add_own(routes: APIRouter, teller: _Teller, access: Access) -> None:
    @routes.get("/mirrors", response_model=AllMirrorsModel, responses=_ALL)
    async def all_mirrors(request: Request) -> Response:
        """Which mirror holds what of each module."""
        return _answer(request, (await teller.of_all(request)).model_dump_json(), _JSON)

    @routes.get("/modules/{name}/mirrors", response_model=ModuleMirrorsModel, responses=_FOUND)
    async def mirrors(name: str, request: Request) -> Response:
        """Which mirror holds which serial of a module, since when, and how far it is behind."""
        found = await teller.of_module(name, access.repository(request.scope, name))
        return _answer(request, found.model_dump_json(), _JSON)


def _add_lists(routes: APIRouter, teller: _Teller) -> None:
    @routes.get("/modules/{name}/mirrorlist", response_class=Response, responses=_PLAIN)
    async def mirrorlist(name: str, request: Request) -> Response:
        """URLs of a module, one a line: of mirrors that are near enough, the freshest first."""
        urls = offered_urls(await teller.standings(request, name))
        return _answer(request, "".join(f"{url}\n" for url in urls), _TEXT)

    @routes.get("/modules/{name}/mirmon", response_class=Response, responses=_PLAIN)
    async def mirmon_state(name: str, request: Request) -> Response:
        """All URLs of a module, as mirmon's state file has them."""
        return _answer(request, mirmon(await teller.standings(request, name)), _TEXT)


def _add_sites(routes: APIRouter, teller: _Teller) -> None:
    @routes.get("/mirrors/{mirror}/mirrorz.json", responses=_FOUND)
    async def mirrorz_site(mirror: str, request: Request) -> Response:
        """One mirror as a site of MirrorZ."""
        site = mirrorz(mirror, await teller.held(request, mirror))
        if site is None:
            raise HttpError(404, "this mirror names no web server")
        return _answer(request, as_text(site), _JSON)

    @routes.get("/mirrors/{mirror}/tunasync.json", responses=_FOUND)
    async def tunasync_jobs(mirror: str, request: Request) -> Response:
        """What one mirror holds, as jobs of tunasync."""
        return _answer(request, as_text(tunasync(await teller.held(request, mirror))), _JSON)


def _answer(request: Request, text: str, media_type: str) -> Response:
    """The answer, or 304 if the asker has the same already."""
    body = text.encode()
    etag = f'W/"{sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    asked = request.headers.get("if-none-match")
    if asked is not None and names_weakly(asked, etag):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=media_type)
