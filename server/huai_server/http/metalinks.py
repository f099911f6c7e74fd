"""`/api/v1/modules/NAME/metalink/PATH`: metalinks of the files of newest commits."""

import asyncio
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from huai_schema.paths import RelPath
from huai_server.export.metalink import MEDIA_TYPE, NoMetalinkError, metalink
from huai_server.http.access import Access
from huai_server.http.any_path import requested_path
from huai_server.http.api import ErrorModel
from huai_server.http.asgi.errors import HttpError
from huai_server.http.mirrors.answers import offered_urls
from huai_server.http.mirrors.known import KnownMirrors
from huai_server.http.newest import Newest
from huai_server.http.settings import Registry

if TYPE_CHECKING:
    from pathlib import Path

_ABOVE = 6
_ANSWERS: dict[int | str, dict[str, object]] = {
    200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}},
    404: {"model": ErrorModel},
}


def router(registry: Registry, access: Access, known_mirrors: KnownMirrors) -> APIRouter:
    """Return the route; modules come from `registry`, which may change at any time."""
    routes = APIRouter(prefix="/api/v1", tags=["modules"])
    newest_commits: dict[Path, Newest] = {}

    @routes.get(
        "/modules/{name}/metalink/{path:any_text}", response_class=Response, responses=_ANSWERS
    )
    async def file_metalink(name: str, path: str, request: Request) -> Response:  # noqa: ARG001 - described only
        """The places of a file of the newest commit, with its size and its digest (RFC 5854)."""
        repository = access.repository(request.scope, name)
        for removed in newest_commits.keys() - registry.served().repositories:
            del newest_commits[removed]
        path_of_file = requested_path(request.scope["raw_path"], _ABOVE)
        newest = newest_commits.setdefault(repository, Newest(repository))
        mirror_urls = offered_urls(await known_mirrors.states(name, repository))
        urls = registry.served().content_urls.get(name, ())
        text = await asyncio.to_thread(_document, newest, path_of_file, (urls, mirror_urls))
        return Response(text, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-cache"})

    return routes


def _document(newest: Newest, path: RelPath, places: tuple[tuple[str, ...], list[str]]) -> str:
    """Return the metalink of a file of the newest commit; `HttpError` if it has none.

    `places`: the URLs that replace those of the commit, and the URLs of mirrors.
    """
    urls, mirror_urls = places
    try:
        file = newest.find(path)
        if file is None:
            raise HttpError(404, "the newest commit names no such file")
        urls = urls or file.descriptor.content_urls
        return metalink(file.file, file.descriptor._replace(content_urls=urls), mirror_urls)
    except NoMetalinkError as error:
        raise HttpError(404, f"this file has no metalink: {error.message}") from None
