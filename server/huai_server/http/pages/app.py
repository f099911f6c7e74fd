"""The addresses of the pages.

An error is a page too, because people follow links.
"""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from huai_schema.errors import HuaiError
from huai_server.http.access import Access
from huai_server.http.any_path import requested_path
from huai_server.http.asgi.errors import HttpError
from huai_server.http.pages.browse import Browser, Location
from huai_server.http.pages.rendering import ASSETS, Page
from huai_server.http.pages.status import Now, front_page, module_page

_DAMAGED = "its metadata cannot be read; the server's log says why"
_ABOVE = 5
_NUMBER = re.compile(r"[0-9]{1,19}")
_UNKEPT = {"Cache-Control": "no-store"}
_FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}


def router(access: Access, now: Now) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(include_in_schema=False)
    browser = Browser()

    @routes.get("/")
    async def front(request: Request) -> Response:
        """All modules."""
        page, modules = Page(request), access.modules(request.scope)
        return await _guarded(page, lambda: front_page(page, modules, now))

    @routes.get("/modules/{name}")
    async def module(request: Request, name: str, before: str = "") -> Response:
        """A module."""
        page, serial = Page(request), _number(before)

        async def build() -> Response:
            row = name, _repository(access, request, page, name)
            return await module_page(page, row, serial, now)

        return await _guarded(page, build)

    @routes.get("/modules/{name}/tree/{commit}")
    @routes.get("/modules/{name}/tree/{commit}/{path:any_text}")
    async def tree(
        request: Request, name: str, commit: str, start: str = "", q: str = ""
    ) -> Response:
        """A directory or file of a commit, or a search below it."""
        page = Page(request)

        async def build() -> Response:
            # People end a directory with a slash.
            raw = request.scope["raw_path"].removesuffix(b"/")
            repository = _repository(access, request, page, name)
            location = Location(name, commit, requested_path(raw, _ABOVE))
            return await browser.tree_page(page, repository, location, _number(start) or 0, q)

        return await _guarded(page, build)

    @routes.get("/modules/{name}/diff/{commits}")
    async def diff(request: Request, name: str, commits: str, start: str = "") -> Response:
        """The differences between two commits."""
        page = Page(request)
        begin = _number(start) or 0

        async def build() -> Response:
            repository = _repository(access, request, page, name)
            return await browser.diff_page(page, repository, name, commits, begin)

        return await _guarded(page, build)

    @routes.get("/pages/{name}")
    async def loaded(name: str) -> Response:
        """A file that pages load; its address changes with its content."""
        asset = ASSETS.get(name)
        if asset is None:
            raise HttpError(404, "there is nothing at this address")
        return Response(asset.content, media_type=asset.media_type, headers=_FOREVER)

    _add_login(routes, access)
    return routes


def _add_login(routes: APIRouter, access: Access) -> None:
    @routes.get("/login")
    async def login(request: Request, to: str = "") -> Response:
        """Ask for a token, and redirect back: browsers send it themselves from then on."""

        async def build() -> Response:
            access.check_login(request.scope)
            # Stays on this server, whatever `to` is: it begins with neither a slash nor a scheme.
            place = "./" + quote(to.lstrip("/"), safe="/%?=&")
            return Response(status_code=303, headers={"Location": place, **_UNKEPT})

        return await _guarded(Page(request), build)


def _repository(access: Access, request: Request, page: Page, name: str) -> Path:
    """Return the repository of the module that a page is about."""
    repository = access.repository(request.scope, name)
    page.module = name
    page.client = access.client(request.scope)
    return repository


def _number(text: str) -> int | None:
    """Parse a number in an address; None for anything else."""
    return int(text) if _NUMBER.fullmatch(text) else None


async def _guarded(page: Page, build: Callable[[], Awaitable[Response]]) -> Response:
    """Return the page, or an error page."""
    try:
        return await build()
    except HttpError as error:
        return error_page(page, error)
    except HuaiError:
        return error_page(page, HttpError(500, _DAMAGED))


def error_page(page: Page, error: HttpError) -> Response:
    """Return the page about an error, with the way back."""
    values = {"status": error.status, "message": error.message, "hint": error.hint}
    answer = page.render("problem.html", values, error.status)
    answer.headers.update(error.headers)
    answer.headers.add_vary_header("Accept")
    return answer
