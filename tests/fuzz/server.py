"""The server as a whole: bytes of a connection, through uvicorn, into the application.

A small repository is served from the disk, and git is run for it.  What comes back has to be
well-formed HTTP (h11 reads it), with no status of 500 and more and nothing in the log that is an
error, and an answer to every request that came whole.
"""

import asyncio
import gzip
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import h11
from uvicorn.server import ServerState

from huai_server.config.mirrors import Mirrors, MirrorSettings
from huai_server.config.tables import Listen, Module
from huai_server.http.app import Application
from huai_server.http.asgi.body import Receive
from huai_server.http.asgi.responder import Send
from huai_server.http.fallback_clients import FallbackSlots
from huai_server.http.server import _uvicorn_config
from huai_server.http.settings import Grant, Served
from tests.fuzz.folder import folder
from tests.fuzz.target import Outcome, Target
from tests.support.committing import Upstream
from tests.support.http_fixtures import Repository, fetch_all, ls_refs, packet, post

_COMMIT = "0123456789abcdef0123456789abcdef01234567"
"""Stands for the commit that is served."""
_PIECE = 300
_TURNS = 60
"""The turns of the loop within which a request that never ends is refused."""
_SECONDS = 30.0
_SERVER_ERROR = 500
_BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\n"
_REFUSAL = b"Invalid HTTP request received."


class _Wire(asyncio.Transport):
    """A client's connection; keeps what is sent."""

    def __init__(self) -> None:
        super().__init__({"peername": ("203.0.113.7", 5), "sockname": ("127.0.0.1", 80)})
        self.received = bytearray()
        self.protocol: Any = None
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.closed:
            self.received += data

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        """Do nothing: all data has been received."""

    resume_reading = pause_reading


class _RecordedApp:
    """The application, and the methods with which it was asked."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.connections = app.connections
        self.methods: list[str] = []

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        self.methods.append(scope["method"])
        await self._app(scope, receive, send)


class _Errors(logging.Handler):
    """The messages logged as errors."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))


@contextmanager
def _no_errors() -> Iterator[None]:
    errors, root = _Errors(), logging.getLogger()
    root.addHandler(errors)
    try:
        yield
    finally:
        root.removeHandler(errors)
    assert not errors.texts, errors.texts[0]


class _Modules:
    """One with metadata, another one with content as well."""

    def __init__(self, path: Path, upstream: Upstream) -> None:
        repository = upstream.places.repository
        tree = os.fsdecode(upstream.tree)
        content = Module(path=tree, serve_content=True, digest="later")
        self._served = Served(
            modules={"m": path, "c": repository},
            private={"p": path},
            certificates={},
            settings={"m": Module(path="", digest="later"), "c": content},
            fallback={"m": FallbackSlots(path / "HEAD", 2)},
            mirrors=Mirrors(Path("/nonexistent"), {}, MirrorSettings()),
        )

    def served(self) -> Served:
        return self._served

    def grant(self, token: str) -> Grant:  # noqa: ARG002 - whatever has the form of one
        return Grant(frozenset("p"), frozenset(("read",)))


class _Server:
    """One for all inputs."""

    def __init__(self) -> None:
        repository = Repository.create(folder("served"), "m")
        self._commit = repository.commit(b"first", b"second").encode()
        upstream = Upstream(folder("content"))
        upstream.write("d/f", "0123456789" * 10, mtime=1_600_000_000)
        upstream.write("\n", "", mtime=1_600_000_000)
        upstream.commit()
        self._app = _RecordedApp(Application(Listen(), _Modules(repository.path, upstream)))
        self._config = _uvicorn_config(Listen(), self._app)  # type: ignore[arg-type]
        self._config.load()
        self._state = ServerState()
        self._state.default_headers = self._config.encoded_headers
        self._runner = asyncio.Runner(loop_factory=self._config.get_loop_factory())

    def answer(self, data: bytes) -> list[int]:
        """The statuses of the answers to all that comes on one connection."""
        self._app.methods.clear()
        with _no_errors():
            output, complete = self._runner.run(
                self._converse(data.replace(_COMMIT.encode(), self._commit))
            )
        return _statuses(output, self._app.methods, complete=complete)

    async def _converse(self, data: bytes) -> tuple[bytes, bool]:
        """Return the data sent back, and true if the client had sent complete requests."""
        wire, tasks = _Wire(), self._state.tasks
        make: Any = self._config.http_protocol_class
        wire.protocol = connection = make(
            config=self._config,
            server_state=self._state,
            app_state={},
            _loop=asyncio.get_running_loop(),
        )
        connection.connection_made(wire)
        async with asyncio.timeout(_SECONDS):
            for at in range(0, len(data), _PIECE):
                if not wire.closed:
                    connection.data_received(data[at : at + _PIECE])
                    await asyncio.sleep(0)
            turns = 0
            while tasks and turns < _TURNS:
                if connection.cycle.more_body and not connection.pipeline:
                    turns += 1
                    await asyncio.sleep(0)
                else:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            complete = not tasks
            wire.close()
            await asyncio.sleep(0)
            while tasks:
                await asyncio.wait(tasks)
        return bytes(wire.received), complete


@cache
def _server() -> _Server:
    return _Server()


def _statuses(data: bytes, methods: list[str], *, complete: bool) -> list[int]:
    """Return the status codes of the responses; one for each request if all are `complete`."""
    codes: list[int] = []
    if data.endswith(_REFUSAL):
        # uvicorn's own, after which it says no more; what was asked before may have no answer.
        at = data.rindex(_BAD_REQUEST)
        assert _answered(data[at:], "GET", codes, complete=True) == b""
        data, complete = data[:at], False
    for method in methods:
        if data:
            data = _answered(data, method, codes, complete=complete)
    assert not data, data
    assert not complete or len(codes) == len(methods), (codes, methods)
    return codes


def _answered(data: bytes, method: str, codes: list[int], *, complete: bool) -> bytes:
    """Note the status of the first answer; what follows it."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=method, target="/", headers=[("Host", "h")]))
    client.send(h11.EndOfMessage())
    client.receive_data(data)
    while not isinstance(event := client.next_event(), h11.EndOfMessage):
        if event is h11.NEED_DATA:
            assert not complete, data
            return b""
        if isinstance(event, h11.Response):
            assert event.status_code < _SERVER_ERROR, data[:200]
            codes.append(event.status_code)
    return client.trailing_data[0]


def _answer(data: bytes) -> object:
    return Outcome(sorted(set(_server().answer(data))))


def _get(target: str, *headers: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {target} HTTP/1.1", "Host: test", *headers, "", ""]).encode()


_DATE = "Sun, 13 Sep 2020 12:26:40 GMT"
_ADVERT = "/git/m.git/info/refs?service=git-upload-pack"
_GZIP = "Content-Encoding: gzip"
_CHUNKED = _get(
    "/git/m.git/git-upload-pack",
    "Git-Protocol: version=2",
    "Content-Type: application/x-git-upload-pack-request",
    "Transfer-Encoding: chunked",
    method="POST",
) + b"%x\r\n%b\r\n0\r\n\r\n" % (len(ls_refs()), ls_refs())

SERVER = {
    "server": Target(
        _answer,
        (),
        [
            _get("/"),
            _get("/api/v1/modules"),
            _get("/api/v1/modules/m", 'If-None-Match: W/"x", *'),
            _get("/healthz", "Connection: close", method="HEAD"),
            _get("/openapi.json"),
            _get(_ADVERT, "Git-Protocol: version=2"),
            _get(_ADVERT, "X-Forwarded-For: 10.0.0.1, ::1", method="HEAD"),
            _get("/git/m.git/HEAD"),
            _get("/api/v1/modules/p", f"Authorization: Bearer huai_0123456789ab_{'A' * 43}"),
            _get("/git/p.git/info/refs", "Authorization: Basic Og=="),
            _get("/content/c/d/f", "Range: bytes=0-9, 20-, -3", 'If-Range: "x"'),
            _get("/content/c/d/f", "Range: bytes=5-6", "Range: bytes=1-2", method="HEAD"),
            _get("/content/c/%64%2f..%2Ff", "Range: bytes=90-999,0-0,40-50"),
            _get("/content/c/d/f", 'If-None-Match: W/"x", *', f"If-Modified-Since: {_DATE}"),
            _get("/content/c/%0a", 'If-Match: "x"', f"If-Unmodified-Since: {_DATE}"),
            _get("/git/n.git/git-receive-pack", "Expect: 100-continue", "Content-Length: 3")
            + b"abc",
            _get("*", "Upgrade: websocket", "Connection: Upgrade", method="OPTIONS"),
            _get("http://test/%2e%2e/?a=b&a=%ff") + _get(_ADVERT) + _get("/healthz"),
            post(ls_refs()),
            post(fetch_all(_COMMIT)),
            post(gzip.compress(ls_refs(), mtime=0), _GZIP),
            _CHUNKED + _get("/"),
        ],
        [
            *(
                *(b"\r\n", b"HTTP/1.0", b"HEAD ", b"POST ", b"CONNECT ", b"Content-Length: "),
                b"chunked",
            ),
            *(b"Transfer-Encoding: ", b"Git-Protocol: ", b"/git/m.git/", b"%2f", b"?", b"#", b"@"),
            *(b"/content/c/", b"%0a", b"%ff", b"Range: bytes=", b"If-Range: ", b"If-Match: "),
            *(b"0000", b"0001", packet(b"deepen 1"), packet(b"include-tag"), b"ref-prefix "),
        ],
    )
}
