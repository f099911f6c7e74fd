"""Run the application: listen, serve until a signal, let transfers finish, return.

Prints nothing and ends no process: it returns after SIGTERM or SIGINT, and the command line
continues.
"""

import asyncio
import contextlib
import logging
import resource
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import FrameType
from typing import cast

import uvicorn

from huai_program.configuration import ConfigError
from huai_schema import __version__
from huai_server.config.tables import Listen
from huai_server.http.access import without_tokens
from huai_server.http.app import Application
from huai_server.http.asgi.connection import Connection, connection_class
from huai_server.http.asgi.handshake import TlsListener
from huai_server.http.asgi.tls import TlsContext
from huai_server.http.settings import Registry

OnStart = Callable[[str, str, int], None]
"""Called once with the bound address: scheme, host and port."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_BACKLOG = 2048
_KEEP_ALIVE_SECONDS = 15
_HEAD_SECONDS = 20.0
_PAUSE_SECONDS = 60.0
_SPARE_FILES = 512
_END_SECONDS = 15.0
_TCP_NOTSENT_LOWAT = 25  # linux/tcp.h; Python has no name for it
_UNSENT_BYTES = 128 << 10

_log = logging.getLogger(__name__)


def serve_http(settings: Listen, registry: Registry, on_start: OnStart) -> None:
    """Serve until SIGTERM or SIGINT; `on_start` is called once, when connections are accepted.

    Raises the process's soft limit on open files.  Raises `ConfigError` if the address or the TLS
    files cannot be used.
    """
    app = Application(settings, registry)
    tls = None if settings.tls is None else TlsContext(settings.tls)
    scheme = "http" if tls is None else "https"
    with listen(settings) as listener:
        host, port = listener.getsockname()[:2]
        # Any connection may also hold a file, and half of them a file of content, opened twice.
        files = settings.max_connections * 5 // 2 + settings.max_subscribers
        _allow_files(files + _SPARE_FILES)
        if shutil.which("git") is None:
            _log.warning(
                "git is not installed: git clone and git fetch get status 503; the rest is served"
            )
        config = _uvicorn_config(settings, app)
        if settings.access_log:
            _log_requests()
        started = partial(on_start, scheme, host, port)
        _Server(config, app, tls, started).run(sockets=[listener])


def listen(settings: Listen) -> socket.socket:
    """Return a listening socket, which the caller closes.

    Raises `ConfigError` if the address cannot be used.
    """
    try:
        return _listen(settings)
    except (OSError, UnicodeError) as error:  # UnicodeError: no host can have this name
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        reason = reason.partition(" (while ")[0]  # Python repeats the address there
        raise ConfigError(
            f"cannot listen on {_url_of(settings.host, settings.port)}: {reason}",
            hint="name another address, or end the program that listens there",
        ) from error


def _listen(settings: Listen) -> socket.socket:
    """Create the listening socket; raises `OSError` or `UnicodeError`."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    address = (settings.host, settings.port)
    listener = socket.create_server(address, family=family, backlog=_BACKLOG)
    # Accepted connections inherit both: the kernel drops a client that is gone or stops reading.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    patience = round(min(settings.timeout, _PAUSE_SECONDS) * 1000)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience)
    # Little unsent data in the kernel: more would hide the pace of a reader.
    listener.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
    return listener


def _url_of(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _allow_files(count: int) -> None:
    """Raise this process's soft limit on open files to `count`, or as far as is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        limit = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _uvicorn_config(settings: Listen, app: Application) -> uvicorn.Config:
    """Return uvicorn's configuration, without its own handling of logs."""
    return uvicorn.Config(
        app,
        http=connection_class(
            app.connections,
            head_seconds=min(settings.timeout, _HEAD_SECONDS),
            pause_seconds=min(settings.timeout, _PAUSE_SECONDS),
        ),
        ws="none",
        interface="asgi3",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=settings.access_log,
        # For the log only: the limits read the header themselves, and not for each poll.
        proxy_headers=settings.access_log and bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        server_header=False,
        headers=[("server", f"huai/{__version__}")],
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.grace,
    )


def _log_requests() -> None:
    """Send uvicorn's request log to standard error, a line for each request, with masked tokens."""
    handler = logging.StreamHandler()
    handler.addFilter(_hide_tokens)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%S%z"))
    logger = logging.getLogger("uvicorn.access")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.INFO)


def _hide_tokens(record: logging.LogRecord) -> bool:
    """Mask the tokens in a log record; return True, so that it is logged."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            without_tokens(each) if isinstance(each, str) else each for each in record.args
        )
    return True


class _Server(uvicorn.Server):
    """uvicorn's server, which returns after a signal; uvicorn's own raises the signal again."""

    def __init__(
        self,
        config: uvicorn.Config,
        app: Application,
        tls: TlsContext | None,
        started: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._app = app
        self._tls = tls
        self._tls_tasks: list[asyncio.Task[None]] = []
        self._started = started
        self._webhooks: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening, with TLS if configured, and the web hooks; then call `started`."""
        await super().startup(sockets=sockets if self._tls is None else [])
        if self.started:
            self._listen_with_tls(sockets or [])
            self._webhooks = asyncio.ensure_future(self._app.webhooks.run())
            self._started()

    def _listen_with_tls(self, sockets: Iterable[socket.socket]) -> None:
        """Start to accept TLS connections, if it is configured, and to follow certificates."""
        if self._tls is None:
            return
        listeners = [TlsListener(self._tls, each, self._make_connection) for each in sockets]
        work = [self._tls.follow(), *(each.run() for each in listeners)]
        self._tls_tasks = [asyncio.ensure_future(each) for each in work]

    def _make_connection(self) -> Connection:
        kind = cast("type[Connection]", self.config.http_protocol_class)
        return kind(self.config, self.server_state, self.lifespan.state)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let requests finish in the grace period; cancel the others, and wait for their end."""
        self._app.news.stop()
        await super().shutdown(sockets=sockets)
        for task in self._tls_tasks:
            task.cancel()
        if self._webhooks is not None:
            await asyncio.wait([self._webhooks], timeout=_END_SECONDS)
        tasks = set(self.server_state.tasks)
        for task in tasks:
            if not task.cancelling():
                task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_END_SECONDS)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Let health checks fail from now on, and uvicorn stop."""
        self._app.stopping = True
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Call `handle_exit` for SIGTERM and SIGINT in the block, in the main thread only."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
