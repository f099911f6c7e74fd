"""The hosts of one client root, and the limit of connections to each.

Each connection has a locked file: `ROOT/hosts/HOST/0` and so on are the slots, and a process that
holds the lock of one may have a connection.  rsync inherits the handle, so the slot is free when
rsync has ended, even if this program was killed before: the kernel drops the lock.  If no slot is
free, one process at a time waits for a slot, and the others wait for the lock of `queue`, so that
one that has just released a slot does not overtake them.  The files are empty, and stay.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from huai_client.state.upstreams import UpstreamHealth, UpstreamSpeed
from huai_program.locking import open_lock, try_lock
from huai_schema.errors import HuaiError

_QUEUE = "queue"
_MOMENT, _POLL_SECONDS = 0.02, 0.2
_CONNECTIONS = 4
"""The default for each host; a module with more streams gets one for each."""
_REQUESTS = 100
"""Concurrent requests on an HTTP/2 connection: what servers allow (nginx 128, Apache 100)."""
_NAME_MAX = 200


class ConnectionLimitError(HuaiError):
    """The lock files of the slots cannot be made or opened."""


class HostLimit:
    """A limit for the connections to one host, across processes: each slot is a locked file."""

    def __init__(self, folder: Path, connections: int) -> None:
        """Use the host's `folder`, with `connections` slots; others may use another number."""
        self._folder = folder
        self.connections = connections

    @contextmanager
    def slot(
        self, pause: Callable[[float], None], waits: Callable[[], None] = lambda: None
    ) -> Iterator[int]:
        """Hold a slot, and yield the handle that the connection's process has to inherit.

        Waits for a slot without a limit: `pause` sleeps for so many seconds, and may raise to end
        the wait.  `waits` is called before each pause except the first, which is short.  Raises
        `ConnectionLimitError` if the lock files cannot be made.
        """
        handle = self._wait(pause, waits)
        try:
            yield handle
        finally:
            os.close(handle)

    @contextmanager
    def more(self, most: int) -> Iterator[tuple[int, ...]]:
        """Hold at most `most` of the slots that are free now; yield their handles."""
        handles: list[int] = []
        try:
            while len(handles) < most and (handle := self._free()) is not None:
                handles.append(handle)
            yield tuple(handles)
        finally:
            for handle in handles:
                os.close(handle)

    def _wait(self, pause: Callable[[float], None], waits: Callable[[], None]) -> int:
        """Wait in the queue, without a limit, for a slot; return its handle, which is to be closed.

        `pause` and `waits` as in `slot`.
        Raises `ConnectionLimitError` if the lock files cannot be made or opened.
        """

        def until(lock: Callable[[], int | None]) -> int:
            """Call `lock` until it returns a handle; report a wait."""
            wait = _MOMENT
            while (handle := lock()) is None:
                if wait > _MOMENT:  # a process that is just taking a slot is not worth a message
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
        """Lock a free slot, and return its handle, which the caller closes; None without one."""
        for number in range(self.connections):
            handle = _lock(self._folder / str(number))
            if handle is not None:
                return handle
        return None


def _lock(path: Path) -> int | None:
    """Lock a file, and return its handle; None if another process holds it."""
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
    """The limits and records of all hosts: made once for each run, and passed down."""

    def __init__(self, root: Path | None = None) -> None:
        """Use the client's `root`; without it there are no limits, and nothing is written."""
        self._folder = None if root is None else root / "hosts"
        self.health = UpstreamHealth(None if root is None else root / "upstreams.json")
        self.speed = UpstreamSpeed(None if root is None else root / "speeds.json")
        self._refused: dict[str, frozenset[str]] = {}
        self._requests: dict[str, int] = {}
        self.bundles: dict[str, bool] = {}
        """By content URL: True if it has sent bundles in this run, False if it refused them."""

    def connection_limit(
        self, host: str, connections: int, streams: int, several: int = 1
    ) -> HostLimit | None:
        """Return the limit for `host` and a module with so many `streams`, or None for no limit.

        `connections` is the configured number; for 0 it is `streams`, or four times `several`, the
        connections of one stream, if that is more.  None for an empty `host`, this machine.
        """
        if self._folder is None or not host:
            return None
        limit = connections or max(_CONNECTIONS * several, streams)
        return HostLimit(self._folder / host.lower()[:_NAME_MAX], limit)

    def requests(self, service: str) -> int:
        """Return the number of HTTP requests to send to `service` at a time.

        That is 100, halved by each `fewer_requests` of this run.
        """
        return self._requests.get(service, _REQUESTS)

    def fewer_requests(self, service: str) -> None:
        """Halve the `requests` of this run, because `service` has refused some as too many."""
        self._requests[service] = max(1, self.requests(service) // 2)

    def refused_options(self, service: str) -> frozenset[str]:
        """Return the options of rsync that `service` has refused in this run."""
        return self._refused.get(service, frozenset())

    def refuse_options(self, service: str, options: frozenset[str]) -> None:
        """Add `options` that `service` refused, or may have dropped a connection for, in this run.

        They are kept in memory only.
        """
        self._refused[service] = self.refused_options(service) | options
