"""The whole HTTP side as one ASGI application.

Requests for git, content and events bypass the framework; FastAPI serves all others.  `pages` has
the pages for people, and renders errors for clients that prefer HTML.
"""

import logging
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware

from huai_schema import __version__
from huai_schema.errors import HuaiError
from huai_server.config.tables import Listen
from huai_server.http import metalinks, tree_api
from huai_server.http.access import Access, is_anonymous
from huai_server.http.api import router
from huai_server.http.asgi.accept import prefers_html
from huai_server.http.asgi.body import Inbox, Receive
from huai_server.http.asgi.connections import ConnectionLimit, address_of
from huai_server.http.asgi.errors import READ_METHODS, HttpError
from huai_server.http.asgi.responder import Send, as_json, send_error
from huai_server.http.branch_cache import BranchCache
from huai_server.http.content import app as content
from huai_server.http.events import app as events
from huai_server.http.events.news import News
from huai_server.http.git import app as git
from huai_server.http.metrics import collector as metrics
from huai_server.http.metrics.slow import SlowRequests
from huai_server.http.metrics.traffic import Traffic
from huai_server.http.mirrors import receive, routes
from huai_server.http.mirrors.known import KnownMirrors
from huai_server.http.module_facts import ModuleFacts
from huai_server.http.openapi import DescribedApi
from huai_server.http.pages import app as pages
from huai_server.http.pages.browse import Browser
from huai_server.http.pages.history import read_days, read_recent
from huai_server.http.pages.rendering import Page
from huai_server.http.pages.status import Now, read_offer
from huai_server.http.settings import Registry
from huai_server.http.webhooks.keeper import WebHooks

_log = logging.getLogger(__name__)
_COMPRESSED_BYTES, _COMPRESSION = 1024, 5
"""The smallest response that is compressed, in bytes, and the level of gzip."""
_FOR_ANY_SITE = ("/api/v1/", "/openapi.json")
"""Addresses that pages of other sites may read without credentials.

They never read a response to a token or a certificate.  A request with a token is preceded by a
preflight, which no address here allows.
"""


class HealthModel(BaseModel):
    """The readiness for requests."""

    status: str
    modules: int


class Application:
    """The ASGI application that uvicorn calls."""

    def __init__(self, settings: Listen, registry: Registry) -> None:
        self.connections = ConnectionLimit(
            settings.max_connections,
            settings.max_connections_per_address,
            address_of(settings.proxies),
        )
        """The limit that the listener applies."""
        self._access = access = Access(settings, registry)
        self.git = git.GitApp(settings, registry, access)
        self.content = content.ContentApp(settings, registry, access)
        self._traffic = Traffic(SlowRequests(access.client))
        self.stopping = False
        """True once a signal has come; health checks then fail."""
        # No documentation page: the framework's loads scripts from other hosts.
        self.api = DescribedApi(title="huai", version=__version__, docs_url=None, redoc_url=None)
        # Each ETag is weak: a compressed response differs from a plain one in its bytes.
        self._compressed = GZipMiddleware(self.api, _COMPRESSED_BYTES, _COMPRESSION)
        self._shared = CORSMiddleware(self._unshared, allow_origins=["*"], expose_headers=["ETag"])
        facts = ModuleFacts(registry)
        self.news = News(registry, facts)
        self.webhooks = WebHooks(registry, self.news)
        self.events = events.EventsApp(settings, self.news, access)
        self.api.include_router(router(facts, access))
        known_mirrors = KnownMirrors(registry)
        self.api.include_router(metalinks.router(registry, access, known_mirrors))
        self.api.include_router(receive.router(registry, access, known_mirrors.commits))
        self.api.include_router(routes.router(facts, access, known_mirrors))
        recent, days = BranchCache(registry, read_recent), BranchCache(registry, read_days)
        offers = BranchCache(registry, read_offer)
        sources = metrics.Sources(self._traffic, self.git, self.connections)
        browser, hooks = Browser(self.content.read_small), self.webhooks
        cached = recent, days, offers
        now = Now(registry, facts, sources, known_mirrors, *cached, hooks, browser)
        self.api.include_router(tree_api.router(access, browser))
        self.api.include_router(pages.router(access, now, self.api.openapi))
        self.api.include_router(metrics.router(facts, known_mirrors, sources, access))
        self._add_health(registry)
        self.api.add_exception_handler(HuaiError, _answer_expected)
        self.api.add_exception_handler(HTTPException, _answer_framework)
        self.api.add_exception_handler(Exception, _answer_unexpected)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request, or the messages of the server's start and end; count the traffic.

        An `HttpError` is sent to the client.
        """
        if scope["type"] != "http":
            await self.api(scope, receive, send)
            return
        counted_send = self._traffic.counted_send(scope, send)
        reply: Send = counted_send
        try:
            reply = await self._access.admit(scope, counted_send)
            await self._serve(scope, receive, reply)
        except HttpError as error:
            await _refuse(error, scope, receive, reply)
        finally:
            counted_send.end()

    async def _serve(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Pass a request to git, content, or API and pages; other sites may read the API."""
        path = scope["path"]
        if path.startswith(git.PREFIX):
            await self.git(scope, receive, send)
            return
        if path.startswith(content.PREFIX):
            await self.content(scope, receive, send)
            return
        readable = scope["method"] in READ_METHODS and path.startswith(_FOR_ANY_SITE)
        app = self._shared if readable and is_anonymous(scope) else self._unshared
        await app(scope, receive, send)

    async def _unshared(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve a request without headers that let other sites read the response."""
        if scope["path"] == events.PATH:
            await self.events(scope, receive, send)
        elif scope["method"] == "HEAD":
            # As GET; uvicorn leaves the body out.
            await self._compressed({**scope, "method": "GET"}, receive, send)
        else:
            await self._compressed(scope, receive, send)

    def _add_health(self, registry: Registry) -> None:
        """Add the route `/healthz`: status 200, and 503 once the server stops."""

        @self.api.get("/healthz", responses={503: {"model": HealthModel}})
        async def healthz() -> JSONResponse:
            """Status 200 as long as requests are welcome."""
            status, code = ("stopping", 503) if self.stopping else ("ok", 200)
            body = HealthModel(status=status, modules=len(registry.served().modules))
            return JSONResponse(body.model_dump(), code)


async def _refuse(error: HttpError, scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Send an error to the client: as text below /git/, else as a page or JSON.

    Text also ends the connection.
    """
    if scope["path"].startswith(git.PREFIX):
        await send_error(error, Inbox(receive), send)
    else:
        await _answer_error(Request(scope), error)(scope, receive, send)


def _answer_error(request: Request, error: HttpError) -> Response:
    """Return an error as a page, if the address is a page's or the client prefers HTML, or JSON."""
    if getattr(request.state, "is_page", False) or prefers_html(request.scope["headers"]):
        return pages.error_page(Page(request), error)
    answer = as_json(error)
    answer.headers.add_vary_header("Accept")
    return answer


async def _answer_expected(request: Request, error: Exception) -> Response:
    """Return the response for an `HttpError`; for any other `HuaiError` log it, and return 500."""
    if not isinstance(error, HttpError):
        # The message may hold paths of this machine, so only the log gets it.
        _log.warning("%s: %s", request.url.path, str(error))
        message = "the module's metadata cannot be read"
        error = HttpError(500, message, hint="see the server's log")
    return _answer_error(request, error)


async def _answer_framework(request: Request, error: Exception) -> Response:
    """Return the response for an unknown address or a wrong method; raise other errors again."""
    if not isinstance(error, HTTPException):
        raise error
    message, headers = str(error.detail).lower(), error.headers or {}
    hint = "" if prefers_html(request.scope["headers"]) else "see /openapi.json"
    refusal = HttpError(error.status_code, message, hint=hint, headers=headers)
    return _answer_error(request, refusal)


async def _answer_unexpected(request: Request, _: Exception) -> Response:
    """Answer any other exception, a bug, whose traceback uvicorn logs as it ends the connection."""
    headers = {"Connection": "close"}
    error = HttpError(500, "internal error", hint="see the server's log", headers=headers)
    return _answer_error(request, error)
