"""libcurl's transfers side by side: it is told which sockets are ready, and when its time is up.

By epoll, since select(2) knows no more than 1024 descriptors.  Knows nothing of HTTP.
"""

import os
import select
import time
from collections.abc import Iterator
from contextlib import suppress

import pycurl

from huai_client.metadata.curl.errors import CurlError

_EVENTS = {
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}


class Loop:
    """The handles that are at work; to be closed when none is."""

    def __init__(self, connections: int, requests: int) -> None:
        """`connections` there may be at most, with so many `requests` on each of HTTP/2."""
        self._poll = select.epoll()
        self._sockets: set[int] = set()
        self._due: float | None = None
        self._multi = pycurl.CurlMulti()
        for option, value in (
            (pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX),
            (pycurl.M_MAX_HOST_CONNECTIONS, connections),
            (pycurl.M_MAX_TOTAL_CONNECTIONS, connections),
            (pycurl.M_MAXCONNECTS, connections),
            (pycurl.M_MAX_CONCURRENT_STREAMS, requests),
            (pycurl.M_SOCKETFUNCTION, self._watch),
            (pycurl.M_TIMERFUNCTION, self._set_timer),
        ):
            self._multi.setopt(option, value)

    def close(self) -> None:
        """Close all connections."""
        self._multi.close()
        self._poll.close()

    def begin(self, handle: pycurl.Curl) -> None:
        """Set `handle` to work."""
        self._multi.add_handle(handle)

    def break_off(self, handle: pycurl.Curl) -> None:
        """Let `handle` work no more."""
        self._multi.remove_handle(handle)

    def step(self, seconds: float) -> None:
        """Let libcurl do what can be done now, or within so many seconds."""
        now = time.monotonic()
        wait = seconds if self._due is None else max(0.0, min(seconds, self._due - now))
        events = self._poll.poll(wait)
        if self._due is not None and time.monotonic() >= self._due:
            self._due = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        for socket, event in events:
            mask = pycurl.CSELECT_IN if event & ~select.EPOLLOUT else 0
            mask |= pycurl.CSELECT_OUT if event & select.EPOLLOUT else 0
            self._multi.socket_action(socket, mask)

    def ended(self) -> Iterator[tuple[pycurl.Curl, CurlError]]:
        """The handles that are done, and how they ended.  They are at work no more."""
        more = 1
        while more:
            more, good, bad = self._multi.info_read()
            for handle, number, text in [*((each, 0, "") for each in good), *bad]:
                self._multi.remove_handle(handle)
                system = os.strerror(handle.getinfo(pycurl.OS_ERRNO)) if number else ""
                yield handle, CurlError(number, text, system)

    def _watch(self, what: int, socket: int, _multi: object, _data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            if socket in self._sockets:
                self._sockets.discard(socket)
                with suppress(OSError):  # it was closed before
                    self._poll.unregister(socket)
        elif socket in self._sockets:
            self._poll.modify(socket, _EVENTS[what])
        else:
            self._poll.register(socket, _EVENTS[what])
            self._sockets.add(socket)

    def _set_timer(self, milliseconds: int) -> None:
        self._due = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000
