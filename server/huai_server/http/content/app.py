"""`/content/NAME/PATH`: the files of modules that hand out content (`serve_content`).

An ASGI application beside the framework: a small file costs half as much so.  Half of all
connections may get content at a time, so that metadata stay within reach; one address gets half of
that at most.  Threads of their own read the files: a disk that hangs holds up nobody who asks for
metadata.
Rule: a path is bytes, of any encoding, and read from the request as it came.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from huai_server.http.access import Access
from huai_server.http.asgi.body import Body, Inbox, Receive
from huai_server.http.asgi.connections import address_of, client_address
from huai_server.http.asgi.errors import READ_METHODS, ClientGoneError, HttpError, check_method
from huai_server.http.asgi.limiter import Limiter
from huai_server.http.asgi.responder import Send
from huai_server.http.asgi.threads import in_thread
from huai_server.http.content.answer import answer
from huai_server.http.content.files import CommittedFiles, FileChangedError, OpenFile
from huai_server.http.settings import Registry, ServeSettings

if TYPE_CHECKING:
    from huai_server.http.settings import Content

Scope = dict[str, Any]

PREFIX = "/content/"

_THREADS = 16
"""A disk does not become quicker by more."""
_log = logging.getLogger(__name__)


class ContentApp:
    """Hands out the files of one server's modules."""

    def __init__(self, settings: ServeSettings, registry: Registry, access: Access) -> None:
        """Modules come from `registry`, which may change at any time."""
        self._access = access
        self._registry = registry
        self._known: dict[str, tuple[Content, CommittedFiles]] = {}
        self._timeout = settings.request_timeout
        self._address_of = address_of(settings.proxies)
        most = max(1, settings.max_connections // 2)
        self._limiter = Limiter(most, settings.queue, settings.request_timeout)
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="content")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; `HttpError` for one that is not served."""
        try:
            check_method(scope["method"], *READ_METHODS)
            await self._answer(scope, receive, send)
        except ClientGoneError:
            pass  # leaving the answer unfinished makes the server drop the connection
        except FileChangedError as error:
            _log.warning("%s", error.message)
        except asyncio.CancelledError:
            _log.warning("an answer was interrupted: the time for transfers at shutdown is over")

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        name, path = _target(scope["raw_path"])
        self._access.repository(scope, name)
        files = self._files(name)
        body = Body(Inbox(receive), b"", 0, self._timeout)
        await body.open()
        address = client_address(scope, self._address_of)
        async with self._limiter.slot(address), self._opened(files, path) as file:
            await answer(file, _headers(scope))(scope, receive, send)

    def _files(self, name: str) -> CommittedFiles:
        content = self._registry.contents().get(name)
        if content is None:
            self._known.pop(name, None)
            raise HttpError(404, "the module hands out no content here")
        known = self._known.get(name)
        if known is None or known[0] is not content:
            known = self._known[name] = content, CommittedFiles(name, content)
        return known[1]

    @asynccontextmanager
    async def _opened(self, files: CommittedFiles, path: bytes) -> AsyncIterator[OpenFile]:
        """The file as long as the block lasts; also one that is opened for nobody is closed."""
        with ExitStack() as closing:

            def opened() -> OpenFile:
                file = files.open(path)
                closing.callback(os.close, file.handle)
                return file

            yield await in_thread(opened, self._pool)


def _target(raw: bytes) -> tuple[str, bytes]:
    """Module and path that are asked for; no escaped slash separates anything."""
    parts = [unquote_to_bytes(part) for part in raw.split(b"/")]
    if len(parts) < 4 or parts[:2] != [b"", b"content"] or any(b"/" in part for part in parts):
        raise HttpError(404, "there is nothing at this address", hint="see /openapi.json")
    return parts[2].decode("latin-1"), b"/".join(parts[3:])


def _headers(scope: Scope) -> dict[str, str]:
    """Those of the request by their names; what stands in several lines is one list."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found
