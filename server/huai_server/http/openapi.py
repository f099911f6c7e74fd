"""`/openapi.json`: what the framework knows of its routes, and what goes past it.

Rule: each status that an address may answer with is described, and no other; a test compares them
with what a server says.
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
    400: "a token stands in the address, or the request is malformed",
    401: "the token is not valid; or there is no such module, or it needs one",
    405: "the address is for other methods",
    500: "metadata cannot be read; the server's log says why",
    503: "the server is busy",
}
"""What any address may answer with."""
_UNUSED = ("422",)
"""Every text is a value here, and whatever is none of an address is not found."""
_SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "a token for private modules"},
    "login": {"type": "http", "scheme": "basic", "description": "the same, as the password"},
}


_PAST = APIRouter()
"""What goes past the framework: described as its own, and served elsewhere."""


def _answers(media_type: str, good: Mapping[int, str], bad: Mapping[int, str]) -> dict[Any, Any]:
    """What an address may answer with, by status."""
    content = {media_type: {"schema": {"type": "string", "format": "binary"}}}
    found = {status: {"description": words, "content": content} for status, words in good.items()}
    return found | {
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
        503: "too many are served at this moment",
    },
)
_EVENTS = _answers(
    "text/event-stream",
    {200: "server-sent events, until somebody hangs up"},
    {414: "too many modules are named", 503: "too many are connected at this moment"},
)
_UNCHANGED = {304: {"description": "it is the version that the request names"}}
_PATH = Path(description="Its bytes, percent-encoded; slashes separate names.")
_MODULES = Query(description="Of these alone; all if there is none.")
_LAST = Header(alias="last-event-id", description="Only newest commits that came after this event.")


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
    """A regular file of the newest commit, as long as it is what that says."""


@_PAST.get(EVENTS, tags=["modules"], response_class=Response, responses=_EVENTS)
def events(
    module: Annotated[tuple[str, ...], _MODULES] = (),
    _last: Annotated[str | None, _LAST] = None,
) -> None:
    """An event `commit` for the newest commit of each module, and then for each new one.

    An object of module, serial, commit, tree and time.  A comment at least every 15 seconds.
    """


class DescribedApi(FastAPI):
    """The framework's part, which describes all others as well."""

    def openapi(self) -> dict[str, Any]:
        """All addresses with what they answer."""
        if self.openapi_schema is None:
            found = super().openapi()
            past = get_openapi(title="", version="", routes=_PAST.routes)
            found["paths"] |= {**past["paths"], **git.DESCRIPTIONS}
            for path, methods in found["paths"].items():
                for operation in methods.values():
                    _complete(path, operation)
            components = found["components"]
            components["securitySchemes"] = _SCHEMES
            for name in ("HTTPValidationError", "ValidationError"):
                components["schemas"].pop(name, None)
            self.openapi_schema = found
        return self.openapi_schema


def _complete(path: str, operation: dict[str, Any]) -> None:
    """Add what every address may say, and that a token may be shown."""
    said = operation["responses"]
    for unused in _UNUSED:
        said.pop(unused, None)
    body = {"text/plain": {"schema": {"type": "string"}}} if path.startswith("/git/") else _ERROR
    for status, words in _ALWAYS.items():
        said.setdefault(str(status), {"description": words, "content": body})
    operation["security"] = [{}, *({name: []} for name in _SCHEMES)]
