"""`/content/NAME/PATH`: the files of modules, all or large ones, as `serve_content` says.

An ASGI application next to the framework, which halves the cost of a small file.  Content takes at
most half of all connections, so that metadata stay within reach; one address gets half of that.
Separate threads read the files: a disk that hangs holds up no request for metadata.
Rule: a path is bytes, in any encoding, and is read from the raw request.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers

from huai_native._native import BundleReader
from huai_schema.entries import File
from huai_schema.errors import HuaiError
from huai_schema.limits import BUNDLE_PATHS, BUNDLE_REQUEST_BYTES
from huai_server.config.tables import Listen
from huai_server.http.access import Access
from huai_server.http.asgi.body import Body, Inbox, Receive, race
from huai_server.http.asgi.errors import READ_METHODS, ClientGoneError, HttpError, check_method
from huai_server.http.asgi.limiter import Limiter
from huai_server.http.asgi.responder import Responder, Send
from huai_server.http.asgi.threads import in_thread
from huai_server.http.content.answer import answer
from huai_server.http.content.files import CommittedFiles, FileChangedError, OpenFile
from huai_server.http.settings import QUEUE, Registry

_RESPONSE_BYTES = 256 << 20
"""A response ends with the first file after so many bytes."""
_PART_BYTES = 256 << 10
_BUNDLES, _BUNDLES_EACH = 64, 8
"""Bundles at a time, in all and of one address: the paths of each take up to 4 MiB of memory."""
_TYPE = b"application/x-huai-bundle"


async def requested_paths(body: Body) -> bytes:
    """Read the body of a request to its end; return the paths in it, each ended by NUL.

    Raises status 400 for another form, 413 for too many paths, and what `Body.open` raises.
    """
    await body.open()
    paths = b"".join([body.head, *[part async for part in body.rest()]])
    if not paths.endswith(b"\0"):
        raise HttpError(400, "each path of the request must end with NUL")
    if paths.count(0) > BUNDLE_PATHS:
        raise HttpError(413, f"the request has more than {BUNDLE_PATHS} paths")
    return paths


async def send_bundle(reader: BundleReader, send: Send, pool: Executor) -> None:
    """Send the files of a bundle (FORMAT.md, "Bundles").

    The engine reads the files, in a thread, while the part before them is sent.
    An error of reading is raised as `UnreadableError` before the first byte is sent, and as
    `ClientGoneError` later.
    """
    out = Responder(send, _TYPE, b"")
    try:
        part = await in_thread(lambda: reader.read(_PART_BYTES), pool)
        while part:
            following = in_thread(lambda: reader.read(_PART_BYTES), pool)
            part, _ = await asyncio.gather(following, out.piece(part))
        await out.end()
    except (HuaiError, OSError) as error:
        message = error.message if isinstance(error, HuaiError) else os.strerror(error.errno or 0)
        raise (ClientGoneError if out.started else UnreadableError)(message) from error


class UnreadableError(HuaiError):
    """The metadata or the tree of a module cannot be read; the message has paths of the machine."""


Scope = dict[str, Any]

PREFIX = "/content/"

_THREADS = 16
"""More threads would not make a disk faster."""
_PAGE_SECONDS = 1.0
"""The longest that a page waits for a disk."""
_log = logging.getLogger(__name__)


class ContentApp:
    """The application that serves the files of modules."""

    def __init__(self, settings: Listen, registry: Registry, access: Access) -> None:
        self._access = access
        self._registry = registry
        self._files_by_module: dict[str, CommittedFiles] = {}
        self._timeout = settings.timeout
        most = max(1, settings.max_connections // 2)
        self._limiter = Limiter(most, QUEUE, settings.timeout)
        self._bundles = Limiter(_BUNDLES, QUEUE, settings.timeout, per_address=_BUNDLES_EACH)
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="content")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or raise `HttpError`; if a file changes, log it and cut the response."""
        try:
            if scope["method"] == "POST" and scope["raw_path"].endswith(b"/"):
                await self._answer_bundle(scope, receive, send)
                return
            check_method(scope["method"], *READ_METHODS)
            await self._answer(scope, receive, send)
        except ClientGoneError:
            pass  # an unfinished response makes the server drop the connection
        except FileChangedError as error:
            _log.warning("%s", error.message)
        except asyncio.CancelledError:
            _log.warning("a response was cut off: the grace period at shutdown is over")

    async def read_small(self, name: str, file: File, client: str) -> bytes | None:
        """Return the content of a file of a commit for a page; empty for one over 64 KiB.

        `client` is the client's address.  None if the file has changed or is not served, the server
        is busy, or it takes longer than a second.
        """

        async def read() -> bytes | None:
            try:
                async with (
                    self._limiter.slot(client),
                    self._opened(self._files_of(name), file.path) as opened,
                ):
                    is_same = (opened.size, opened.mtime) == (file.size, file.mtime)
                    return opened.beginning if is_same else None
            except HttpError:
                return None

        task = asyncio.ensure_future(read())
        await asyncio.wait([task], timeout=_PAGE_SECONDS)
        return task.result() if task.done() else None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a file of the newest commit; or raise `HttpError`."""
        name, path = _module_and_path(scope["raw_path"])
        self._access.repository(scope, name)
        files = self._files_of(name)
        body = Body(Inbox(receive), b"", 0, self._timeout)
        await body.open()
        address = self._access.client(scope)
        async with self._limiter.slot(address), self._opened(files, path) as file:
            await answer(file, Headers(scope=scope))(scope, receive, send)

    async def _answer_bundle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the files that the body names, in one response; or raise `HttpError`."""
        name, path = _module_and_path(scope["raw_path"])
        self._access.repository(scope, name)
        files = self._files_of(name)
        if path:
            raise HttpError(404, "there is nothing at this address", hint="see /openapi.json")
        encoding = dict(scope["headers"]).get(b"content-encoding", b"")
        body = Body(Inbox(receive), encoding, BUNDLE_REQUEST_BYTES, self._timeout)
        address = self._access.client(scope)
        async with self._bundles.slot(address), self._limiter.slot(address):
            try:
                reader = await self._open_bundle(files, body)
                await race(send_bundle(reader, send, self._pool), body.wait_for_disconnect())
            except UnreadableError as error:
                raise files.unreadable(error) from None

    async def _open_bundle(self, files: CommittedFiles, body: Body) -> BundleReader:
        """Return the reader of the files that the body names, which alone keeps their paths.

        Raises `UnreadableError`, or `HttpError` for a bad request.
        """
        paths = await requested_paths(body)

        def open_bundle() -> BundleReader:
            snapshot = files.snapshot().arguments
            try:
                return BundleReader(snapshot, files.tree, paths, _RESPONSE_BYTES)
            except OSError as error:
                raise UnreadableError(os.strerror(error.errno or 0)) from error

        return await in_thread(open_bundle, self._pool)

    def _files_of(self, name: str) -> CommittedFiles:
        """Return the files of a module, cached until its settings change.

        Raises status 404 if the module serves no content.
        """
        served = self._registry.served()
        module, repository = served.settings.get(name), served.repository(name)
        if module is None or repository is None or not module.serves_content:
            self._files_by_module.pop(name, None)
            raise HttpError(404, "the module does not serve content here")
        files = self._files_by_module.get(name)
        if files is None or files.module is not module:
            files = self._files_by_module[name] = CommittedFiles(name, module, repository)
        return files

    @asynccontextmanager
    async def _opened(self, files: CommittedFiles, path: bytes) -> AsyncIterator[OpenFile]:
        """Yield the open file, and close it even if it is opened after a cancellation."""
        with ExitStack() as closing:

            def opened() -> OpenFile:
                """Open the file, to be closed after the response."""
                file = files.open(path)
                closing.callback(os.close, file.handle)
                return file

            yield await in_thread(opened, self._pool)


def _module_and_path(raw: bytes) -> tuple[str, bytes]:
    """Parse a raw address to module and path; raises 404, also for an escaped slash."""
    parts = [unquote_to_bytes(part) for part in raw.split(b"/")]
    if len(parts) < 4 or parts[:2] != [b"", b"content"] or any(b"/" in part for part in parts):
        raise HttpError(404, "there is nothing at this address", hint="see /openapi.json")
    return parts[2].decode("latin-1"), b"/".join(parts[3:])
