"""The hosts of one client root, and the limit of connections to each.

Each connection has a locked file: `ROOT/hosts/HOST/0` and so on are the slots, and a process that
holds the lock of one may have a connection.  rsync inherits the handle, so the slot is free when
rsync has ended, even if this program was killed before: the kernel drops the lock.  If no slot is
free, one process at a time waits for a slot, and the others wait for the lock of `queue`, so that
one that has just given a slot back does not overtake them.  The files are empty, and stay.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from huai_client.state.upstream_health import UpstreamHealth
from huai_client.state.upstream_speed import UpstreamSpeed
from huai_program.locking import open_lock, try_lock
from huai_schema.errors import ExitCode, HuaiError

_QUEUE = "queue"
_MOMENT, _POLL_SECONDS = 0.02, 0.2
_CONNECTIONS = 4
"""The default for each host; a module with more streams gets as many."""
_REQUESTS = 100
"""Over one connection of HTTP/2 at a time: what servers allow (nginx 128, Apache 100)."""
_NAME_MAX = 200


class ConnectionLimitError(HuaiError):
    """The lock files of the slots cannot be made or opened."""

    exit_code = ExitCode.FILE_IO


class ConnectionLimit:
    """The connections to one host."""

    def __init__(self, folder: Path, connections: int) -> None:
        """`folder` is the host's; other processes may use another number of connections."""
        self._folder = folder
        self.connections = connections

    @contextmanager
    def slot(
        self, pause: Callable[[float], None], waits: Callable[[], None] = lambda: None
    ) -> Iterator[int]:
        """Hold a slot: the handle that the connection's process has to inherit.

        `pause` sleeps for so many seconds, and may raise to end the wait.  `waits` is called before
        each pause except the first, which is short.
        """
        handle = self._wait(pause, waits)
        try:
            yield handle
        finally:
            os.close(handle)

    @contextmanager
    def more(self, most: int) -> Iterator[tuple[int, ...]]:
        """Hold at most so many slots, of those that are free now."""
        found: list[int] = []
        try:
            while len(found) < most and (handle := self._free()) is not None:
                found.append(handle)
            yield tuple(found)
        finally:
            for handle in found:
                os.close(handle)

    def _wait(self, pause: Callable[[float], None], waits: Callable[[], None]) -> int:
        def until(take: Callable[[], int | None]) -> int:
            wait = _MOMENT
            while (handle := take()) is None:
                if wait > _MOMENT:  # somebody else who just takes a slot is no reason to talk
                    waits()
                pause(wait)
                wait = _POLL_SECONDS
            return handle

        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            queue = until(lambda: _lock(self._folder / _QUEUE))
            try:
                return until(self._free)
            finally:
                os.close(queue)
        except OSError as error:
            raise ConnectionLimitError(
                f"{self._folder}: {error.strerror}",
                hint="run as the user that the state belongs to, or give another --root",
            ) from error

    def _free(self) -> int | None:
        """Lock a free slot; None: there is none."""
        for number in range(self.connections):
            handle = _lock(self._folder / str(number))
            if handle is not None:
                return handle
        return None


def _lock(path: Path) -> int | None:
    handle = open_lock(path, mode=0o644)
    try:
        if try_lock(handle):
            return handle
    except OSError:
        os.close(handle)
        raise
    os.close(handle)
    return None


class Hosts:
    """Made once for each run, and handed down."""

    def __init__(self, root: Path | None = None) -> None:
        """`root` is the client's; None: no limits, and nothing is remembered on the disk."""
        self._folder = None if root is None else root / "hosts"
        self.health = UpstreamHealth(None if root is None else root / "upstreams.json")
        self.speed = UpstreamSpeed(None if root is None else root / "speeds.json")
        self._refused: dict[str, frozenset[str]] = {}
        self._requests: dict[str, int] = {}

    def connection_limit(
        self, host: str, connections: int, streams: int, several: int = 1
    ) -> ConnectionLimit | None:
        """The limit for `host` and a module with so many `streams`; None: no limit.

        `connections` is the configured number; 0: it is not configured.  Streams that have
        `several` connections each get as many times more.
        """
        if self._folder is None or not host:
            return None
        limit = connections or max(_CONNECTIONS * several, streams)
        return ConnectionLimit(self._folder / host.lower()[:_NAME_MAX], limit)

    def requests(self, service: str) -> int:
        """How many requests of HTTP `service` is sent at a time."""
        return self._requests.get(service, _REQUESTS)

    def fewer_requests(self, service: str) -> None:
        """`service` has refused some for being too many."""
        self._requests[service] = max(1, self.requests(service) // 2)

    def refused_options(self, service: str) -> frozenset[str]:
        """Options of rsync that `service` has refused in this run."""
        return self._refused.get(service, frozenset())

    def refuse_options(self, service: str, options: frozenset[str]) -> None:
        """`service` has refused these."""
        self._refused[service] = self.refused_options(service) | options
