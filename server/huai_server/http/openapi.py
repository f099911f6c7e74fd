"""`/openapi.json`: the framework's description of its routes, and of those that bypass it.

Rule: each status that an address may answer with is described, and no other; a test compares them
with the responses of a server.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, Header, Path, Query, Response
from fastapi.openapi.utils import get_openapi

from huai_server.http.api import ErrorModel
from huai_server.http.content.app import PREFIX as CONTENT
from huai_server.http.events.app import PATH as EVENTS
from huai_server.http.git.app import PREFIX as GIT

_REF = "#/components/schemas/ErrorModel"
_ERROR = {"application/json": {"schema": {"$ref": _REF}}}
_TEXT = {"text/plain": {"schema": {"type": "string"}}}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_ALWAYS = {
    400: "a token is part of the address, or the request is malformed",
    401: "the token is not valid, the module does not exist, or it needs a token",
    405: "the address is for other methods",
    500: "metadata cannot be read; the server's log says why",
    503: "the server is busy",
}
_UNUSED = ("422",)
"""Any text is a valid value, and a value that matches nothing gets 404."""
_SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "a token for private modules"},
    "login": {"type": "http", "scheme": "basic", "description": "the same, as the password"},
}


_PAST = APIRouter()
"""The routes that bypass the framework: described here, served elsewhere."""


def _answers(
    media_type: str, good: Mapping[int, str], bad: Mapping[int, str], refusal: Mapping[str, Any]
) -> dict[Any, Any]:
    """Return descriptions of responses by status; `refusal` has the form of the `bad` ones."""
    content = {media_type: _BINARY}
    described = {
        status: {"description": words, "content": content} for status, words in good.items()
    }
    return described | {status: {"description": words, **refusal} for status, words in bad.items()}


_FILE = _answers(
    "application/octet-stream",
    {200: "the file", 206: "ranges of it; several as multipart/byteranges"},
    {
        403: "the server may not read it",
        404: "the newest commit names no such file",
        410: "it was changed or removed since the newest commit",
        412: "it is not the version that the request names",
        416: "it has none of these ranges",
        503: "too many are being served",
    },
    {"model": ErrorModel},
)
_EVENTS = _answers(
    "text/event-stream",
    {200: "server-sent events, until the client hangs up"},
    {414: "too many modules are named", 503: "too many clients are connected"},
    {"model": ErrorModel},
)
_UNCHANGED = {304: {"description": "it is the version that the request names"}}
_PATH = Path(description="Its bytes, percent-encoded; slashes separate names.")
_MODULES = Query(description="Modules to report; all of them by default.")
_LAST = Header(alias="last-event-id", description="Report only commits newer than this event.")


@_PAST.get(
    CONTENT + "{name}/{path}",
    tags=["content"],
    response_class=Response,
    responses=_FILE | _UNCHANGED,
)
def content(
    name: str,
    path: Annotated[str, _PATH],
    ranges: Annotated[str | None, Header(alias="range")] = None,
) -> None:
    """A regular file of the newest commit, while it matches that commit."""


@_PAST.get(EVENTS, tags=["modules"], response_class=Response, responses=_EVENTS)
def events(
    module: Annotated[tuple[str, ...], _MODULES] = (),
    _last: Annotated[str | None, _LAST] = None,
) -> None:
    """An event `commit` for the newest commit of each module, then for each new one.

    Its data are an object of module, serial, commit, tree and time.  A comment follows every 15 s.
    """


def _git_answers(media_type: str, more: Mapping[int, str]) -> dict[Any, Any]:
    """Describe the responses of an address of git, with `more` refusals by status."""
    refusals = {403: "git may only read here", 404: "there is nothing at this address", **more}
    return _answers(media_type, {200: "the file or refs"}, refusals, {"content": _TEXT})


_BUSY, _PACK = {503: "too many are being served"}, "application/x-git-upload-pack"
_FETCH = {
    400: "it is not a request of git",
    408: "it did not arrive in time",
    413: "it is too large",
    415: "it is of another type or encoding",
    **_BUSY,
}
_REQUEST = {"requestBody": {"required": True, "content": {f"{_PACK}-request": _BINARY}}}
_STATIC = _git_answers("application/octet-stream", {})
_DIGEST = Path(pattern="^[0-9a-f]{64}$")
_START = Path(pattern="^[0-9a-f]{2}$", description="The first two digits of the digest.")
_GIT = APIRouter(
    prefix=GIT + "{name}.git",
    tags=["git"],
    default_response_class=Response,
    generate_unique_id_function=lambda route: route.name,
)


@_GIT.get("/info/refs", responses=_git_answers(f"{_PACK}-advertisement", _BUSY))
def refs(name: str, service: Literal["git-upload-pack"]) -> None:
    """The newest commit (gitprotocol-http)."""


@_GIT.post(
    "/git-upload-pack", responses=_git_answers(f"{_PACK}-result", _FETCH), openapi_extra=_REQUEST
)
def fetch(name: str) -> None:
    """A fetch (gitprotocol-http)."""


@_GIT.get("/static/head", responses=_STATIC | _UNCHANGED)
def head(name: str) -> None:
    """The newest head (FORMAT.md, Static transport)."""


@_GIT.get("/static/packs/{digest}.pack", responses=_STATIC)
def pack(name: str, digest: Annotated[str, _DIGEST]) -> None:
    """A pack that the head names."""


@_GIT.get("/static/lists/{digest}", name="list", responses=_STATIC)
def list_of_steps(name: str, digest: Annotated[str, _DIGEST]) -> None:
    """A list that the head names."""


@_GIT.get("/blocks/{start}/{digest}", responses=_STATIC)
def blocks(name: str, start: Annotated[str, _START], digest: Annotated[str, _DIGEST]) -> None:
    """The block index of a file (FORMAT.md)."""


_PAST.include_router(_GIT)


class DescribedApi(FastAPI):
    """The framework's application, which also describes the routes that bypass it."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document of all addresses; it is made once."""
        if self.openapi_schema is None:
            document = super().openapi()
            bypass = get_openapi(title="", version="", routes=_PAST.routes)
            document["paths"] |= bypass["paths"]
            for path, methods in document["paths"].items():
                for operation in methods.values():
                    _complete(path, operation)
            components = document["components"]
            components["securitySchemes"] = _SCHEMES
            for name in ("HTTPValidationError", "ValidationError"):
                components["schemas"].pop(name, None)
            self.openapi_schema = document
        return self.openapi_schema


def _complete(path: str, operation: dict[str, Any]) -> None:
    """Add the statuses of any address, and the ways to send a token."""
    responses = operation["responses"]
    for unused in _UNUSED:
        responses.pop(unused, None)
    body = _TEXT if path.startswith(GIT) else _ERROR
    for status, words in _ALWAYS.items():
        responses.setdefault(str(status), {"description": words, "content": body})
    operation["security"] = [{}, *({name: []} for name in _SCHEMES)]
