"""The addresses of the pages."""

import re
from pathlib import Path
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request, Response

from huai_server.http.access import Access
from huai_server.http.any_path import requested_path
from huai_server.http.asgi.errors import HttpError
from huai_server.http.pages.browse import Browser, Location
from huai_server.http.pages.rendering import ASSETS, Page
from huai_server.http.pages.status import Now, front_page, module_page

_ABOVE = 5
_NUMBER = re.compile(r"[0-9]{1,19}")
_UNKEPT = {"Cache-Control": "no-store"}
_FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}


def router(access: Access, now: Now) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(include_in_schema=False, dependencies=[Depends(_mark)])
    browser = Browser()

    @routes.get("/")
    async def front(request: Request) -> Response:
        """All modules."""
        return await front_page(Page(request), access.modules(request.scope), now)

    @routes.get("/modules/{name}")
    async def module(request: Request, name: str, before: str = "") -> Response:
        """A module."""
        page, repository = _open(access, request, name)
        return await module_page(page, (name, repository), _number(before), now)

    @routes.get("/modules/{name}/tree/{commit}")
    @routes.get("/modules/{name}/tree/{commit}/{path:any_text}")
    async def tree(
        request: Request, name: str, commit: str, start: str = "", q: str = ""
    ) -> Response:
        """A directory or file of a commit, or a search below it."""
        # People end a directory with a slash.
        raw = request.scope["raw_path"].removesuffix(b"/")
        page, repository = _open(access, request, name)
        location = Location(name, commit, requested_path(raw, _ABOVE))
        return await browser.tree_page(page, repository, location, _number(start) or 0, q)

    @routes.get("/modules/{name}/diff/{commits}")
    async def diff(request: Request, name: str, commits: str, start: str = "") -> Response:
        """The differences between two commits."""
        page, repository = _open(access, request, name)
        return await browser.diff_page(page, repository, name, commits, _number(start) or 0)

    @routes.get("/pages/{name}")
    async def loaded(name: str) -> Response:
        """A file that pages load; its address changes with its content."""
        asset = ASSETS.get(name)
        if asset is None:
            raise HttpError(404, "there is nothing at this address")
        return Response(asset.content, media_type=asset.media_type, headers=_FOREVER)

    @routes.get("/login")
    async def login(request: Request, to: str = "") -> Response:
        """Ask for a token, and redirect back: browsers send it themselves from then on."""
        access.check_login(request.scope)
        # Stays on this server, whatever `to` is: it begins with neither a slash nor a scheme.
        place = "./" + quote(to.lstrip("/"), safe="/%?=&")
        return Response(status_code=303, headers={"Location": place, **_UNKEPT})

    return routes


def _mark(request: Request) -> None:
    """Let an error be a page too, because people follow links."""
    request.state.is_page = True


def _open(access: Access, request: Request, name: str) -> tuple[Page, Path]:
    """Return a page about a module, and the module's repository."""
    repository = access.repository(request.scope, name)
    request.state.module = name
    return Page(request, access.client(request.scope)), repository


def _number(text: str) -> int | None:
    """Parse a number in an address; None for anything else."""
    return int(text) if _NUMBER.fullmatch(text) else None


def error_page(page: Page, error: HttpError) -> Response:
    """Return the page about an error, with the way back."""
    values = {"status": error.status, "message": error.message, "hint": error.hint}
    answer = page.render("problem.html", values, error.status)
    answer.headers.update(error.headers)
    answer.headers.add_vary_header("Accept")
    return answer
