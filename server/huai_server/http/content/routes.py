"""`/content/NAME/PATH`: the files of modules that hand out content (`serve_content`).

A path is bytes, of any encoding; so it is read from the request as it came, and not as the
framework has decoded it.
"""

from typing import Annotated
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, Path, Request
from starlette.convertors import PathConvertor, register_url_convertor

from huai_server.http.api import ErrorModel
from huai_server.http.asgi.errors import HttpError
from huai_server.http.content.contents import ContentResponse, Contents

PREFIX = "/content/"

_ERROR = {"model": ErrorModel}


class _AnyPath(PathConvertor):
    """Also names that hold a line feed."""

    regex = r"[\s\S]*"


register_url_convertor("any", _AnyPath())

_NamedPath = Annotated[str, Path(description="percent-encoded bytes of a path in the module")]


def router(contents: Contents) -> APIRouter:
    """The route, for GET and HEAD."""
    routes = APIRouter(tags=["content"])

    @routes.head("/content/{name}/{path:any}", include_in_schema=False)
    @routes.get(
        "/content/{name}/{path:any}",
        status_code=200,
        response_class=ContentResponse,
        responses={
            206: {"description": "ranges of the file; several as multipart/byteranges"},
            304: {"description": "it is the version that the request names"},
            403: _ERROR,
            404: _ERROR,
            410: _ERROR,
            412: _ERROR,
            416: _ERROR,
            503: _ERROR,
        },
    )
    async def content(name: str, path: _NamedPath, request: Request) -> ContentResponse:
        """A regular file of the newest commit, as long as it is what the commit says."""
        del path  # decoded, which loses bytes
        return ContentResponse(contents, name, _raw_path(request.scope["raw_path"], name))

    return routes


def _raw_path(target: bytes, name: str) -> bytes:
    """The path in the module: no escaped slash of `target` separates anything."""
    parts = [unquote_to_bytes(part) for part in target.split(b"/")]
    if parts[:3] != [b"", b"content", name.encode()] or any(b"/" in part for part in parts):
        raise HttpError(404, "there is nothing at this address", hint="see /openapi.json")
    return b"/".join(parts[3:])
