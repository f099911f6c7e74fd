"""Git's smart HTTP protocol, read-only: `/git/NAME.git/info/refs` and `…/git-upload-pack`.

An ASGI application beside the framework: the answer "nothing new" may cost one small read and a
look into memory, and nothing more.  See gitprotocol-http(5).
Rule: the path of a request is compared and never opened; a repository comes from the registry.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from huai_server.http.access import Access
from huai_server.http.asgi.allowance import Allowance
from huai_server.http.asgi.body import Body, Inbox, Receive, race
from huai_server.http.asgi.connections import address_of, client_address
from huai_server.http.asgi.errors import READ_METHODS, ClientGoneError, HttpError, check_method
from huai_server.http.asgi.limiter import Limiter
from huai_server.http.asgi.responder import NO_CACHE, Headers, Responder, Send, send_error
from huai_server.http.git.block_indices import asked_index, send_index
from huai_server.http.git.branch_state import read_branch_state
from huai_server.http.git.plain_fetch import PlainFetch, opening, plain_fetch
from huai_server.http.git.ready_packs import ReadyPacks
from huai_server.http.git.reply_cache import Key, ReplyCache
from huai_server.http.git.request import parse_request
from huai_server.http.git.side_band import send_ready
from huai_server.http.git.single_flight import Question, SingleFlight
from huai_server.http.git.spool import Spool
from huai_server.http.git.static_files import OFFER, asked_static, offers_static, send_static
from huai_server.http.git.upload_pack import Call, Git
from huai_server.http.settings import Registry, ServeSettings

PREFIX = "/git/"

_log = logging.getLogger(__name__)

_ADVERT = "info/refs"
_SERVICE = "git-upload-pack"
_SERVICE_QUERY = b"service=git-upload-pack"
_ADVERT_TYPE = b"application/x-git-upload-pack-advertisement"
_REQUEST_TYPE = b"application/x-git-upload-pack-request"
_RESULT_TYPE = b"application/x-git-upload-pack-result"
_CONTENT = b"huai-content"
"""Where a relay has the content: URLs, with blanks between them."""
_ADVERT_PREFIX = b"001e# service=git-upload-pack\n0000"
_VERSION = re.compile(rb"(?:^|:)version=([012])(?=:|$)")
_PROTOCOL_BYTES = 256
_GIT_SECONDS, _GIT_GROWTH, _GIT_SECONDS_EACH = 120.0, 0.2, 10.0
"""Seconds of git's work for one address: at once, gained in a second, and for one fetch.

A fetch that waits for its reader takes long, and little work."""
_DUMB = ("HEAD", "objects/", "packed-refs")

Scope = dict[str, Any]
_Handler = Callable[[Path, Scope, Inbox, Send], Coroutine[Any, Any, None]]
RawHeaders = Iterable[tuple[bytes, bytes]]


class GitApp:
    """Serves the repositories of a registry to git, pygit2 and others that speak the protocol."""

    def __init__(self, settings: ServeSettings, registry: Registry, access: Access) -> None:
        """Needs git in PATH: `GitMissingError`."""
        self._settings = settings
        self._access = access
        self._registry = registry
        self._cache = ReplyCache(settings.cache_bytes)
        timeout = settings.request_timeout
        self._address_of = address_of(settings.proxies)
        spool = Spool(settings.spool_folder, settings.spool_bytes - settings.spool_bytes // 2)
        # Half of the room is for what cannot be had again at will.
        self._ready = ReadyPacks(settings.spool_folder, settings.spool_bytes // 2)
        self.answers = SingleFlight(Git(timeout), self._cache, spool, timeout)
        self.transfers = Limiter(settings.max_transfers, settings.queue, timeout)
        self._allowance = Allowance(_GIT_SECONDS, _GIT_GROWTH, most=_GIT_SECONDS_EACH)
        # Their own slots: a poll must not wait behind packs that take minutes.
        self._listings = Limiter(settings.max_transfers, settings.queue, timeout)
        self._handlers = {_SERVICE: self._upload_pack}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        inbox = Inbox(receive)
        name, _, operation = scope["path"].removeprefix(PREFIX).partition(".git/")
        try:
            handle = self._handler(name, operation)
            if handle is None:
                raise _unknown(name, operation)
            repository = self._access.repository(scope, name)
            if not repository.exists():
                raise HttpError(404, "nothing is committed there yet")
            await handle(repository, scope, inbox, send)
        except HttpError as error:
            await send_error(error, inbox, send)
        except ClientGoneError:
            pass  # leaving the answer unfinished makes the server drop the connection
        except asyncio.CancelledError:
            _log.warning("an answer was interrupted: the time for transfers at shutdown is over")

    async def _advert(
        self, name: str, repository: Path, scope: Scope, inbox: Inbox, send: Send
    ) -> None:
        check_method(scope["method"], *READ_METHODS)
        if scope["query_string"] != _SERVICE_QUERY:
            _check_service(scope["query_string"])
        version = protocol_version(scope["headers"])
        state = read_branch_state(repository)
        key = None if state is None else Key(repository, state, version, advert=True, request=b"")
        prefix = b"" if version == 2 else _ADVERT_PREFIX
        out = Responder(send, _ADVERT_TYPE, prefix, [*NO_CACHE, *self._offers(name)])
        ready = None if key is None else self._cache.get(key)
        if ready is not None:
            self.answers.answered["memory"] += 1
            await out.whole(ready)
            return
        body = Body(inbox, b"", 0, self._settings.request_timeout)
        await body.open()
        call = Call(repository, version, advert=True)
        question = Question(
            call, key, None, self._listings, client_address(scope, self._address_of)
        )
        await race(self.answers.answer(question, out), body.gone())

    def _offers(self, name: str) -> Headers:
        """What a client is told of beside the commit."""
        static = offers_static(self._registry.static_folders().get(name))
        urls = " ".join(self._registry.content_urls().get(name, ()))
        return [*(OFFER if static else ()), *([(_CONTENT, urls.encode())] if urls else ())]

    def _handler(self, name: str, operation: str) -> _Handler | None:
        if operation == _ADVERT:
            return partial(self._advert, name)
        if asked_static(operation):
            return partial(self._static, name, operation)
        digest = asked_index(operation)
        return self._handlers.get(operation) if digest is None else partial(self._index, digest)

    async def _static(
        self, name: str, place: str, _: Path, scope: Scope, inbox: Inbox, send: Send
    ) -> None:
        check_method(scope["method"], *READ_METHODS)
        folder = self._registry.static_folders().get(name)
        if folder is None:
            raise HttpError(404, "there are no static files of this module")
        sending = send_static(folder, place, scope["headers"], send)
        if place.endswith("/head"):
            await sending
            return
        body = Body(inbox, b"", 0, self._settings.request_timeout)
        await body.open()
        await race(sending, body.gone())

    async def _index(
        self, digest: bytes, repository: Path, scope: Scope, inbox: Inbox, send: Send
    ) -> None:
        check_method(scope["method"], *READ_METHODS)
        body = Body(inbox, b"", 0, self._settings.request_timeout)
        await body.open()
        await race(send_index(repository, digest, send), body.gone())

    async def _upload_pack(self, repository: Path, scope: Scope, inbox: Inbox, send: Send) -> None:
        check_method(scope["method"], "POST")
        headers = dict(scope["headers"])
        body = self._body(headers, inbox)
        await body.open()
        version = protocol_version(scope["headers"])
        key, fetch = None, None
        limiter = self.transfers
        allowance: Allowance | None = self._allowance
        if body.complete:
            request = parse_request(body.head, version)
            if request.command == b"ls-refs":
                limiter, allowance = self._listings, None
            state = read_branch_state(repository)
            if state is not None:
                key = Key(repository, state, version, advert=False, request=request.digest)
                fetch = None if version else plain_fetch(body.head)
        out = Responder(send, _RESULT_TYPE, b"")
        ready = None if key is None else self._cache.get(key)
        if ready is not None:
            self.answers.answered["memory"] += 1
            await out.whole(ready)
            return
        call = Call(repository, version, advert=False)
        address = client_address(scope, self._address_of)
        question = Question(call, key, body, limiter, address, allowance)
        await race(self._fetched(question, fetch, out), body.gone())

    async def _fetched(self, question: Question, fetch: PlainFetch | None, out: Responder) -> None:
        """Answer with a file, if there is one for this, or else with what git says."""
        if fetch and question.key:
            repository, state = question.key.repository, question.key.state
            async with self._ready.find(repository, state.decode(), fetch) as pack:
                if pack is not None:
                    self.answers.answered["file"] += 1
                    await send_ready(pack, opening(fetch.want, pack.common), out)
                    return
        await self.answers.answer(question, out)

    def _body(self, headers: dict[bytes, bytes], inbox: Inbox) -> Body:
        """The request's body; refuses headers with a wrong type or more bytes than allowed."""
        if headers.get(b"content-type", b"").split(b";")[0].strip() != _REQUEST_TYPE:
            raise HttpError(415, f"the content type must be {_REQUEST_TYPE.decode()}")
        length = headers.get(b"content-length", b"0")
        limit = self._settings.max_body
        if not length.isdigit() or len(length) > 19 or int(length) > limit:
            raise HttpError(413, f"the request body exceeds {limit} bytes")
        encoding = headers.get(b"content-encoding", b"").strip().lower()
        return Body(inbox, encoding, limit, self._settings.request_timeout)


def protocol_version(headers: RawHeaders) -> int:
    """The highest version that the Git-Protocol header offers and git knows; 0 without one."""
    for name, value in headers:
        if name == b"git-protocol" and len(value) <= _PROTOCOL_BYTES:
            return max(map(int, _VERSION.findall(value)), default=0)
    return 0


def _check_service(query: bytes) -> None:
    """Refuse a query for another service than git-upload-pack, however it is spelled."""
    try:
        services = parse_qs(query.decode("latin-1"), max_num_fields=8).get("service", [])
    except ValueError:
        services = ["too many"]
    if services == [_SERVICE]:
        return
    if services == ["git-receive-pack"]:
        raise _read_only()
    if not services:
        raise _dumb()
    raise HttpError(403, "there is no such git service here", hint="only git-upload-pack is served")


def _unknown(name: str, operation: str) -> HttpError:
    """The error for an address without anything, with a hint for whoever typed it."""
    if not name or not operation:
        return HttpError(404, "there is nothing here", hint="use /git/NAME.git with git clone")
    if operation == "git-receive-pack":
        return _read_only()
    if operation.startswith(_DUMB):
        return _dumb()
    return HttpError(404, "there is nothing at this address")


def _read_only() -> HttpError:
    return HttpError(403, "metadata repositories cannot be pushed to")


def _dumb() -> HttpError:
    return HttpError(403, "the dumb HTTP protocol is not served", hint="use git 1.6.6 or newer")
