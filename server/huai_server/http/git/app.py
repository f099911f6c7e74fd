"""Git's smart HTTP protocol, read-only, and the static files: all addresses `/git/NAME.git/…`.

An ASGI application next to the framework: most requests are for a small file.  Stock git speaks
the protocol, one process for each request (gitprotocol-http(5)).
Rule: the path of a request is compared and never opened; a repository comes from the registry.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from huai_program.listing_hashes import HASHES_TYPE, LISTING_HASHES, stored_hashes
from huai_server.config.tables import Listen
from huai_server.http.access import Access
from huai_server.http.asgi.body import Body, Inbox, Receive, race
from huai_server.http.asgi.errors import READ_METHODS, ClientGoneError, HttpError, check_method
from huai_server.http.asgi.limiter import Allowance, Limiter
from huai_server.http.asgi.responder import Responder, Send, send_error
from huai_server.http.asgi.threads import in_thread
from huai_server.http.git.answer import answer
from huai_server.http.git.static_files import BLOCKS, content_link, is_static, send_static
from huai_server.http.git.upload_pack import Call, Git
from huai_server.http.settings import MAX_BODY, QUEUE, Registry

PREFIX = "/git/"

_log = logging.getLogger(__name__)

_ADVERT = "info/refs"
_SERVICE = "git-upload-pack"
_SERVICE_QUERY = b"service=git-upload-pack"
_ADVERT_TYPE = b"application/x-git-upload-pack-advertisement"
_REQUEST_TYPE = b"application/x-git-upload-pack-request"
_RESULT_TYPE = b"application/x-git-upload-pack-result"
_ADVERT_PREFIX = b"001e# service=git-upload-pack\n0000"
_VERSION = re.compile(rb"(?:^|:)version=([012])(?=:|$)")
_PROTOCOL_BYTES = 256
_LISTINGS = (b"0013command=ls-refs", b"0014command=ls-refs\n")
"""The first bytes of a request for refs in protocol v2."""
_GIT_SECONDS, _GIT_GROWTH, _GIT_SECONDS_EACH = 120.0, 0.2, 10.0
"""Seconds of git's work for one address: at once, gained in a second, and for one fetch.

A fetch that waits for its reader takes long without much work."""
_IDS_BYTES = 1 << 20
"""The ids of one request for listing hashes."""
_DUMB = ("HEAD", "objects/", "packed-refs")

Scope = dict[str, Any]
_Handler = Callable[[Path, Scope, Inbox, Send], Coroutine[Any, Any, None]]
RawHeaders = Iterable[tuple[bytes, bytes]]


class GitApp:
    """The application that serves repositories to git and other clients of its protocol."""

    def __init__(self, settings: Listen, registry: Registry, access: Access) -> None:
        self._settings = settings
        self._registry = registry
        self._access = access
        timeout = settings.timeout
        self._git = Git(timeout)
        self.transfers = Limiter(settings.max_transfers, QUEUE, timeout)
        self._allowance = Allowance(_GIT_SECONDS, _GIT_GROWTH, most=_GIT_SECONDS_EACH)
        # Separate slots: a request for refs must not wait behind packs that take minutes.
        self._listings = Limiter(settings.max_transfers, QUEUE, timeout)
        self._handlers = {
            _ADVERT: self._send_advert,
            _SERVICE: self._upload_pack,
            LISTING_HASHES: self._send_hashes,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; sends an `HttpError`, and cuts off a response whose client is gone."""
        inbox = Inbox(receive)
        name, _, operation = scope["path"].removeprefix(PREFIX).partition(".git/")
        try:
            handle = self._handler(operation)
            if handle is None:
                raise _unknown_error(name, operation)
            repository = self._access.repository(scope, name)
            if not repository.exists():
                raise HttpError(404, "this module has no commit yet")
            await handle(repository, scope, inbox, send)
        except HttpError as error:
            await send_error(error, inbox, send)
        except ClientGoneError:
            pass  # an unfinished response makes the server drop the connection
        except asyncio.CancelledError:
            _log.warning("a response was cut off: the grace period at shutdown is over")

    async def _send_advert(self, repository: Path, scope: Scope, inbox: Inbox, send: Send) -> None:
        """Send the advertisement of refs; or raise `HttpError`."""
        check_method(scope["method"], *READ_METHODS)
        if scope["query_string"] != _SERVICE_QUERY:
            _check_service(scope["query_string"])
        version = protocol_version(scope["headers"])
        out = Responder(send, _ADVERT_TYPE, b"" if version == 2 else _ADVERT_PREFIX)
        body = Body(inbox, b"", 0, self._settings.timeout)
        await body.open()
        call = Call(repository, version, advert=True)
        await race(self._send_refs(call, None, scope, out), body.wait_for_disconnect())

    def _handler(self, operation: str) -> _Handler | None:
        """Return the method that serves an operation; None for an unknown operation."""
        if is_static(operation):
            return partial(self._send_static_file, operation)
        return self._handlers.get(operation)

    async def _send_static_file(
        self, place: str, repository: Path, scope: Scope, inbox: Inbox, send: Send
    ) -> None:
        """Send a file of the repository, with links to content; or raise `HttpError`."""
        check_method(scope["method"], *READ_METHODS)
        name = scope["path"].removeprefix(PREFIX).partition(".git/")[0]
        module = self._registry.served().settings.get(name)
        is_head = place.endswith("/head")
        is_linked = (module is not None and module.serves_content) and (
            place.startswith(BLOCKS) or (is_head and module.serve_content != "large")
        )
        links = [content_link(name, place)] if is_linked else []
        sending = send_static(repository, place, scope, send, links)
        if is_head:
            await sending
            return
        body = Body(inbox, b"", 0, self._settings.timeout)
        await body.open()
        await race(sending, body.wait_for_disconnect())

    async def _upload_pack(self, repository: Path, scope: Scope, inbox: Inbox, send: Send) -> None:
        """Serve a POST of refs or packs until the client goes; raises `HttpError` to refuse it."""
        check_method(scope["method"], "POST")
        headers = dict(scope["headers"])
        body = self._body(headers, inbox)
        await body.open()
        if not body.head:
            raise HttpError(400, "the request body is empty")
        version = protocol_version(scope["headers"])
        call = Call(repository, version, advert=False)
        is_listing = version == 2 and body.complete and body.head.startswith(_LISTINGS)
        run = self._send_refs if is_listing else self._send_pack
        out = Responder(send, _RESULT_TYPE, b"")
        await race(run(call, body, scope, out), body.wait_for_disconnect())

    async def _send_refs(self, call: Call, body: Body | None, scope: Scope, out: Responder) -> None:
        """Send refs by git, in a slot for listings."""
        async with self._listings.slot(self._access.client(scope)):
            await answer(self._git, call, body, out)

    async def _send_pack(self, call: Call, body: Body, scope: Scope, out: Responder) -> None:
        """Send a pack by git, in a slot for transfers; charge the address for git's time.

        Raises status 503 if the address has no time left.
        """
        address = self._access.client(scope)
        self._allowance.check(address)
        async with self.transfers.slot(address):
            begun = time.monotonic()
            try:
                await answer(self._git, call, body, out)
            finally:
                self._allowance.spend(address, time.monotonic() - begun)

    async def _send_hashes(self, repository: Path, scope: Scope, inbox: Inbox, send: Send) -> None:
        """Send the listing hashes of trees that a POST names; or raise `HttpError`."""
        check_method(scope["method"], "POST")
        body = Body(inbox, b"", _IDS_BYTES, self._settings.timeout)
        await body.open()
        lines = body.head + b"".join([part async for part in body.rest()])
        try:
            trees = bytes.fromhex(lines.decode("latin-1"))
        except ValueError:
            raise HttpError(400, "the body must be ids in hexadecimal, one a line") from None
        cache = repository.with_name(LISTING_HASHES)
        async with self._listings.slot(self._access.client(scope)):
            records = await in_thread(partial(stored_hashes, cache, trees))
        await Responder(send, HASHES_TYPE.encode(), b"").send_all(records)

    def _body(self, headers: dict[bytes, bytes], inbox: Inbox) -> Body:
        """Return the request's body; raises 415 for a wrong type, 413 for too many bytes."""
        if headers.get(b"content-type", b"").split(b";")[0].strip() != _REQUEST_TYPE:
            raise HttpError(415, f"the content type must be {_REQUEST_TYPE.decode()}")
        length = headers.get(b"content-length", b"0")
        limit = MAX_BODY
        if not length.isdigit() or len(length) > 19 or int(length) > limit:
            raise HttpError(413, f"the request body exceeds {limit} bytes")
        encoding = headers.get(b"content-encoding", b"").strip().lower()
        return Body(inbox, encoding, limit, self._settings.timeout)


def protocol_version(headers: RawHeaders) -> int:
    """Parse the Git-Protocol header to the highest version (0 to 2) that it has; 0 without one."""
    for name, value in headers:
        if name == b"git-protocol" and len(value) <= _PROTOCOL_BYTES:
            return max(map(int, _VERSION.findall(value)), default=0)
    return 0


def _check_service(query: bytes) -> None:
    """Raise status 403 unless the query, in any encoding, names git-upload-pack."""
    try:
        services = parse_qs(query.decode("latin-1"), max_num_fields=8).get("service", [])
    except ValueError:
        services = ["too many"]
    if services == [_SERVICE]:
        return
    if services == ["git-receive-pack"]:
        raise _read_only_error()
    if not services:
        raise _dumb_error()
    raise HttpError(403, "this git service is not offered", hint="only git-upload-pack is served")


def _unknown_error(name: str, operation: str) -> HttpError:
    """Return the error for an unknown address: 403 for a push or the dumb protocol, else 404."""
    if not name or not operation:
        return HttpError(404, "there is nothing here", hint="use /git/NAME.git with git clone")
    if operation == "git-receive-pack":
        return _read_only_error()
    if operation.startswith(_DUMB):
        return _dumb_error()
    return HttpError(404, "there is nothing at this address")


def _read_only_error() -> HttpError:
    return HttpError(403, "metadata repositories cannot be pushed to")


def _dumb_error() -> HttpError:
    return HttpError(403, "the dumb HTTP protocol is not served", hint="use git 1.6.6 or newer")
