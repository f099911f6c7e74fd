"""The whole HTTP side as one ASGI application.

Git's requests are looked at first and go past the framework, and so do those for content; all
others are FastAPI's.
Pages and metrics that come later are routes of `Application.api`.  The page at `/` is plain HTML
that loads nothing.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from huai_schema import __version__
from huai_schema.errors import HuaiError
from huai_server.http import metalinks
from huai_server.http.api import Heads, ModuleModel, all_modules, router
from huai_server.http.asgi.body import Receive
from huai_server.http.asgi.errors import HttpError
from huai_server.http.asgi.responder import Send, as_json
from huai_server.http.content import app as content
from huai_server.http.content import description
from huai_server.http.git import app as git
from huai_server.http.settings import Registry, ServeSettings

_LAST_SECOND = 253_402_300_799
"""The last second of the year 9999, which is the last that Python can print."""


def front_page(modules: Sequence[ModuleModel]) -> str:
    """All of the page."""
    rows = "".join(map(_row, modules)) or "<tr><td>no modules yet</td></tr>"
    return (
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>huai</title>'
        "<h1>huai</h1><p>Metadata of file mirrors, for huai-client. Also: "
        '<a href="api/v1/modules">modules</a>, <a href="healthz">health</a> and a '
        '<a href="openapi.json">description</a> as JSON.</p>'
        f"<table>{rows}</table></html>\n"
    )


def _row(module: ModuleModel) -> str:
    name = escape(module.name)
    link = f'<td><a href="api/v1/modules/{name}">{name}</a></td>'
    return f"<tr>{link}<td>{escape(_state(module))}</td></tr>"


def _state(module: ModuleModel) -> str:
    if module.problem is not None:
        return module.problem
    if module.totals is None or module.committed is None:
        return "no commit yet"
    when = datetime.fromtimestamp(max(0, min(module.committed, _LAST_SECOND)), UTC)
    return f"serial {module.serial}, {module.totals.entries:,} entries, {when:%Y-%m-%d %H:%M} UTC"


class HealthModel(BaseModel):
    """Whether requests are welcome."""

    status: str
    modules: int


class _Api(FastAPI):
    """The framework's part, which describes content as well."""

    def openapi(self) -> dict[str, Any]:
        found = super().openapi()
        found["paths"][description.PATH] = description.DESCRIPTION
        return found


class Application:
    """The ASGI application that uvicorn calls."""

    def __init__(self, settings: ServeSettings, registry: Registry) -> None:
        """Reads nothing yet."""
        self.git = git.GitApp(settings, registry)
        self.content = content.ContentApp(settings, registry)
        self.stopping = False
        """Set once a signal has come; health checks then fail."""
        # No page of documentation: that of the framework loads scripts from other hosts.
        self.api = _Api(title="huai", version=__version__, docs_url=None, redoc_url=None)
        heads = Heads(registry)
        self.api.include_router(router(heads))
        self.api.include_router(metalinks.router(registry))
        self._add_front_page(heads)
        self._add_health(registry)
        self.api.add_exception_handler(HuaiError, _expected)
        self.api.add_exception_handler(HTTPException, _framework)
        self.api.add_exception_handler(Exception, _unexpected)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """One request, or the life of the server."""
        if scope["type"] == "http" and scope["path"].startswith(git.PREFIX):
            await self.git(scope, receive, send)
            return
        if scope["type"] == "http" and scope["path"].startswith(content.PREFIX):
            await self.content(scope, receive, send)
            return
        if scope["type"] == "http" and scope["method"] == "HEAD":
            # As GET; uvicorn leaves the body out.
            scope = {**scope, "method": "GET"}
        await self.api(scope, receive, send)

    def _add_front_page(self, heads: Heads) -> None:
        @self.api.get("/", include_in_schema=False)
        async def index() -> HTMLResponse:
            """What a person who looks here may want to know."""
            return HTMLResponse(front_page(await all_modules(heads)))

    def _add_health(self, registry: Registry) -> None:
        @self.api.get("/healthz", responses={503: {"model": HealthModel}})
        async def healthz() -> JSONResponse:
            """200 as long as requests are welcome."""
            status, code = ("stopping", 503) if self.stopping else ("ok", 200)
            body = HealthModel(status=status, modules=len(registry.modules()))
            return JSONResponse(body.model_dump(), code)


def create_app(settings: ServeSettings, registry: Registry) -> Application:
    """The application; raises `GitMissingError` where git is not installed."""
    return Application(settings, registry)


def _error(status: int, error: str, hint: str) -> JSONResponse:
    return JSONResponse({"error": error, "hint": hint}, status)


async def _expected(_: Request, error: Exception) -> JSONResponse:
    """Answer a `HuaiError`: an `HttpError` with its own text, any other one without details."""
    if isinstance(error, HttpError):
        return as_json(error)
    return _error(500, "the module's metadata cannot be read", "see the server's log")


async def _framework(_: Request, error: Exception) -> JSONResponse:
    """Answer an unknown address or a wrong method."""
    if not isinstance(error, HTTPException):
        raise error
    answer = _error(error.status_code, str(error.detail).lower(), "see /openapi.json")
    answer.headers.update(error.headers or {})
    return answer


async def _unexpected(_: Request, __: Exception) -> JSONResponse:
    """Answer any other exception, which is a bug; the framework logs the traceback."""
    return _error(500, "internal error", "see the server's log")
