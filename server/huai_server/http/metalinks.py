"""`/api/v1/modules/NAME/metalink/PATH`: metalinks of the files of newest commits."""

import asyncio
import logging
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from huai_schema.errors import HuaiError
from huai_schema.paths import RelPath
from huai_server.export.metalink import MEDIA_TYPE, NoMetalinkError, metalink
from huai_server.http.access import Access
from huai_server.http.any_path import asked_path
from huai_server.http.api import ErrorModel
from huai_server.http.asgi.errors import HttpError
from huai_server.http.mirrors.answers import offered_urls
from huai_server.http.mirrors.who_holds import WhoHolds
from huai_server.http.newest import Newest
from huai_server.http.settings import Registry, every_repository

if TYPE_CHECKING:
    from pathlib import Path

_ABOVE = 6
"""How many parts of the address stand before the path."""
_ANSWERS: dict[int | str, dict[str, object]] = {
    200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}},
    404: {"model": ErrorModel},
}
_log = logging.getLogger(__name__)


def router(registry: Registry, access: Access, who: WhoHolds) -> APIRouter:
    """The route; modules come from `registry`, which may change at any time."""
    routes = APIRouter(prefix="/api/v1", tags=["modules"])
    known: dict[Path, Newest] = {}

    @routes.get(
        "/modules/{name}/metalink/{path:any_text}", response_class=Response, responses=_ANSWERS
    )
    async def file_metalink(name: str, path: str, request: Request) -> Response:  # noqa: ARG001 - described only
        """Where a file of the newest commit is, its size and its digest (RFC 5854)."""
        repository = access.repository(request.scope, name)
        for gone in known.keys() - every_repository(registry):
            del known[gone]
        path_of_file = asked_path(request.scope["raw_path"], _ABOVE)
        newest = known.setdefault(repository, Newest(repository))
        others = offered_urls(await who.standings(name, repository))
        urls = registry.content_urls().get(name, ())
        text = await asyncio.to_thread(_document, newest, path_of_file, (name, urls, others))
        return Response(text, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-cache"})

    return routes


def _document(newest: Newest, path: RelPath, known: tuple[str, tuple[str, ...], list[str]]) -> str:
    """`known`: the module; what takes the place of the commit's content URLs; what else has it."""
    name, urls, others = known
    try:
        found = newest.find(path)
        if found is None:
            raise HttpError(404, "the newest commit names no such file")
        urls = urls or found.descriptor.content_urls
        return metalink(found.file, found.descriptor._replace(content_urls=urls), others)
    except NoMetalinkError as error:
        raise HttpError(404, f"there is no metalink of this file: {error.message}") from None
    except HttpError:
        raise
    except HuaiError as error:
        # The message holds paths of this machine, so only the log gets it.
        _log.warning("%s: %s", name, error.message)
        raise
