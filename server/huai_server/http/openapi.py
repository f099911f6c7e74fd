"""`/openapi.json`: the framework's description of its routes, and of those that bypass it.

Rule: each status that an address may answer with is described, and no other; a test compares them
with the responses of a server.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Header, Path, Query, Response
from fastapi.openapi.utils import get_openapi

from huai_server.http.api import ErrorModel
from huai_server.http.content.app import PREFIX as CONTENT
from huai_server.http.events.app import PATH as EVENTS
from huai_server.http.git import description as git

_REF = "#/components/schemas/ErrorModel"
_ERROR = {"application/json": {"schema": {"$ref": _REF}}}
_ALWAYS = {
    400: "a token is part of the address, or the request is malformed",
    401: "the token is not valid, the module does not exist, or it needs a token",
    405: "the address is for other methods",
    500: "metadata cannot be read; the server's log says why",
    503: "the server is busy",
}
"""The statuses of any address."""
_UNUSED = ("422",)
"""Any text is a valid value, and a value that matches nothing gets 404."""
_SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "a token for private modules"},
    "login": {"type": "http", "scheme": "basic", "description": "the same, as the password"},
}


_PAST = APIRouter()
"""The routes that bypass the framework: described here, served elsewhere."""


def _answers(media_type: str, good: Mapping[int, str], bad: Mapping[int, str]) -> dict[Any, Any]:
    """Describe the responses of an address, by status."""
    content = {media_type: {"schema": {"type": "string", "format": "binary"}}}
    described = {
        status: {"description": words, "content": content} for status, words in good.items()
    }
    return described | {
        status: {"description": words, "model": ErrorModel} for status, words in bad.items()
    }


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
)
_EVENTS = _answers(
    "text/event-stream",
    {200: "server-sent events, until the client hangs up"},
    {414: "too many modules are named", 503: "too many clients are connected"},
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


class DescribedApi(FastAPI):
    """The framework's application, which also describes the routes that bypass it."""

    def openapi(self) -> dict[str, Any]:
        """Describe all addresses and their responses."""
        if self.openapi_schema is None:
            document = super().openapi()
            bypass = get_openapi(title="", version="", routes=_PAST.routes)
            document["paths"] |= {**bypass["paths"], **git.DESCRIPTIONS}
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
    body = {"text/plain": {"schema": {"type": "string"}}} if path.startswith("/git/") else _ERROR
    for status, words in _ALWAYS.items():
        responses.setdefault(str(status), {"description": words, "content": body})
    operation["security"] = [{}, *({name: []} for name in _SCHEMES)]
