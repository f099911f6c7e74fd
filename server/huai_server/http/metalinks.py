"""`/api/v1/modules/NAME/metalink/PATH`: metalinks (RFC 5854) of the files of newest commits.

The content URLs of the commit come first, in their order, then its mirrors, then those that attest
what they hold.  A `hash` element must have a type of IANA's registry of hash names, which has no
BLAKE3, so the digest is in an element of huai's namespace, which other programs must ignore.
"""

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import quote_from_bytes
from xml.sax.saxutils import escape, quoteattr

from fastapi import APIRouter, Request, Response

from huai_schema import __version__
from huai_schema.codec.descriptor import Descriptor
from huai_schema.entries import File
from huai_schema.paths import RelPath, basename
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


MEDIA_TYPE = "application/metalink4+xml"
_NAMESPACE = "urn:ietf:params:xml:ns:metalink"
_OWN_NAMESPACE = "urn:x-huai:metalink"
_SPACES = {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}


def metalink(
    file: File, descriptor: Descriptor, more_urls: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return the metalink of a file, whose URLs are those of the commit and `more_urls`.

    That maps the URLs of further mirrors to their countries, or "".

    Raises status 404 if XML cannot hold the name of the file, or all URLs are missing.
    """
    urls = tuple(dict.fromkeys((*descriptor.content_urls, *descriptor.mirrors, *more_urls)))
    if not urls:
        raise _no_metalink("the commit names no content URLs")
    name = _attribute(basename(file.path))
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<metalink xmlns="{_NAMESPACE}">',
        f" <generator>huai/{escape(__version__)}</generator>",
        f" <file name={name}>",
        f"  <size>{file.size}</size>",
    ]
    if file.digest:
        lines.append(
            f'  <digest xmlns="{_OWN_NAMESPACE}" type="blake3">{file.digest.hex()}</digest>'
        )
    for priority, url in enumerate(urls, 1):
        address, country = escape(_address(url, file.path)), more_urls.get(url, "").lower()
        location = f' location="{country}"' if country else ""
        lines.append(f'  <url{location} priority="{priority}">{address}</url>')
    return "\n".join([*lines, " </file>", "</metalink>", ""])


def _no_metalink(reason: str) -> HttpError:
    return HttpError(404, f"this file has no metalink: {reason}")


def _attribute(name: bytes) -> str:
    """Return a name in quotes; raises status 404 for characters that XML cannot hold."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise _no_metalink("the name of the file is not UTF-8") from None
    if not all(char in _SPACES or " " <= char <= "\ufffd" or char > "\uffff" for char in text):
        raise _no_metalink("the name of the file holds a control character")
    return quoteattr(text, _SPACES)


def _address(url: str, path: bytes) -> str:
    """Return the URL of a file below a content URL, of a daemon or of a web server."""
    host, colons, module = url.partition("::")
    top = f"rsync://{host}/{module}" if colons and "/" not in host else url
    return f"{top.rstrip('/')}/{quote_from_bytes(path, safe='/')}"


_ABOVE = 6
_ANSWERS: dict[int | str, dict[str, object]] = {
    200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}},
    404: {"model": ErrorModel},
}


def router(registry: Registry, access: Access, known_mirrors: KnownMirrors) -> APIRouter:
    """Return the route of metalinks; modules come from `registry`, which may change at any time."""
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
        urls = registry.served().content_urls(name)
        text = await asyncio.to_thread(_document, newest, path_of_file, (urls, mirror_urls))
        return Response(text, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-cache"})

    return routes


def _document(
    newest: Newest, path: RelPath, places: tuple[tuple[str, ...], Mapping[str, str]]
) -> str:
    """Return the metalink of a file of the newest commit; raises 404 if that cannot be made.

    Raises another `HuaiError` for damaged metadata.
    `places`: the URLs that replace those of the commit, and the countries by URL of mirrors.
    """
    urls, mirror_urls = places
    file = newest.find(path)
    if file is None:
        raise HttpError(404, "the newest commit names no such file")
    urls = urls or file.descriptor.content_urls
    return metalink(file.file, file.descriptor._replace(content_urls=urls), mirror_urls)
