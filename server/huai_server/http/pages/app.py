"""The addresses of the pages."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request, Response

from huai_server.http.access import Access
from huai_server.http.any_path import parse_number, requested_path
from huai_server.http.asgi.errors import HttpError
from huai_server.http.pages.browse import Location, View
from huai_server.http.pages.history import Recent
from huai_server.http.pages.mirrors import MirrorView, mirrors_page
from huai_server.http.pages.operator import operator_page
from huai_server.http.pages.rendering import ASSETS, Page
from huai_server.http.pages.status import Choice, Now, front_page, module_page, module_row

_ABOVE = 5
_UNKEPT = {"Cache-Control": "no-store"}
_FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}


def router(access: Access, now: Now, describe: Callable[[], dict[str, Any]]) -> APIRouter:
    """Return the routes of all pages; `describe` returns the OpenAPI document."""
    routes = APIRouter(include_in_schema=False, dependencies=[Depends(_mark)])
    _add_status(routes, access, now)
    _add_browser(routes, access, now)

    @routes.get("/api")
    async def api(request: Request) -> Response:
        """The addresses of the API, for people."""
        return Page(request).render("api.html", {"paths": describe()["paths"]})

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

    @routes.get("/search")
    async def search(request: Request, q: str = "") -> Response:
        """A search in all modules."""
        page = Page(request, access.client(request.scope))
        return await now.browser.search_page(page, access.modules(request.scope), q)

    return routes


def _add_status(routes: APIRouter, access: Access, now: Now) -> None:
    """Add the routes of modules and mirrors."""

    @routes.get("/")
    async def front(
        request: Request, q: str = "", state: str = "", sort: str = "", start: str = ""
    ) -> Response:
        """All modules."""
        choice = Choice(q, state, sort, parse_number(start), everything=start == "all")
        return await front_page(Page(request), access.modules(request.scope), choice, now)

    @routes.get("/mirrors")
    async def mirrors(
        request: Request, start: str = "", column: str = "", module: str = ""
    ) -> Response:
        """All mirrors."""
        view = MirrorView(parse_number(start), parse_number(column), module)
        return await mirrors_page(Page(request), access.modules(request.scope), view, now)

    @routes.get("/operator")
    async def operator(request: Request, start: str = "") -> Response:
        """Connections, disk use, failures and what expires, for who runs the server."""
        access.check_operator(request.scope)
        modules = access.modules(request.scope, "operator")
        return await operator_page(Page(request), modules, parse_number(start), now)

    @routes.get("/modules/{name}")
    async def module(request: Request, name: str, before: str = "", period: str = "") -> Response:
        """A module."""
        page, repository = _open(access, request, name)
        return await module_page(page, (name, repository), parse_number(before), period, now)

    @routes.get("/modules/{name}/badge.svg")
    async def badge(request: Request, name: str) -> Response:
        """The serial and state of a module, as a picture for other pages."""
        page, repository = _open(access, request, name)
        values = {"module": await module_row(page, name, repository, now)}
        return page.render("badge.svg", values, media_type="image/svg+xml")

    @routes.get("/modules/{name}/atom.xml")
    async def feed(request: Request, name: str) -> Response:
        """The newest commits of a module as an Atom feed (RFC 4287)."""
        page, repository = _open(access, request, name)
        recent = await now.recent.get(repository) or Recent()
        values = {"name": name, "commits": recent.commits}
        return page.render("atom.xml", values, media_type="application/atom+xml")


def _add_browser(routes: APIRouter, access: Access, now: Now) -> None:
    """Add the routes of trees and differences."""

    async def opened(request: Request, name: str, commit: str) -> tuple[Page, Path, Location, View]:
        """Return the page, repository and location of a path, and what is known of its mirrors."""
        # People end a directory with a slash.
        raw = request.scope["raw_path"].removesuffix(b"/")
        page, repository = _open(access, request, name)
        location = Location(name, commit, requested_path(raw, _ABOVE))
        urls = now.registry.served().content_urls(name)
        states = await now.known_mirrors.states(name, repository)
        recent = await now.recent.get(repository) or Recent()
        view = View(content_urls=urls, states=states, commits=recent.commits)
        return page, repository, location, view

    @routes.get("/modules/{name}/tree/{commit}")
    @routes.get("/modules/{name}/tree/{commit}/{path:any_text}")
    async def tree(
        request: Request,
        name: str,
        commit: str,
        start: str = "",
        q: str = "",
        history: str = "",
    ) -> Response:
        """A directory or file of a commit, or a search below it."""
        page, repository, location, view = await opened(request, name, commit)
        past = view.commits if history else None
        order = request.query_params.get("sort", "")
        view = view._replace(start=parse_number(start), text=q, past=past, order=order)
        return await now.browser.tree_page(page, repository, location, view)

    @routes.get("/modules/{name}/download/{commit}/{path:any_text}")  # noqa: FAST003 - read raw
    async def download(request: Request, name: str, commit: str, country: str = "") -> Response:
        """A redirect to a mirror that holds a file."""
        page, repository, location, view = await opened(request, name, commit)
        return await now.browser.download(page, repository, location, view, country)

    @routes.get("/modules/{name}/diff")
    async def chosen_diff(request: Request, name: str, old: str = "", new: str = "") -> Response:
        """A redirect to the differences between two chosen commits; the latest without `new`."""
        page, _ = _open(access, request, name)
        place = page.address("modules", name, "diff", f"{old}..{new}")
        return Response(status_code=303, headers={"Location": place, **_UNKEPT})

    @routes.get("/modules/{name}/diff/{commits}")
    async def diff(
        request: Request, name: str, commits: str, start: str = "", kind: str = "all"
    ) -> Response:
        """The differences between two commits."""
        page, repository = _open(access, request, name)
        view = View(parse_number(start), kind=kind)
        return await now.browser.diff_page(page, repository, name, commits, view)


def _mark(request: Request) -> None:
    """Mark the request, so that an error is sent as a page: people follow links."""
    request.state.is_page = True


def _open(access: Access, request: Request, name: str) -> tuple[Page, Path]:
    """Return a page about a module, and the module's repository; raises `HttpError` if hidden."""
    repository = access.repository(request.scope, name)
    request.state.module = name
    return Page(request, access.client(request.scope)), repository


def error_page(page: Page, error: HttpError) -> Response:
    """Return the page about an error, with the way back."""
    values = {"status": error.status, "message": error.message, "hint": error.hint}
    answer = page.render("problem.html", values, error.status)
    answer.headers.update(error.headers)
    answer.headers.add_vary_header("Accept")
    return answer
