"""Concurrent transfers of libcurl, which is notified of ready sockets and of elapsed timers.

By epoll, since select(2) is limited to 1024 descriptors.  Independent of HTTP.
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
    """The event loop of running handles.  Close it when none is left."""

    def __init__(self, connections: int, requests: int) -> None:
        """Allow `connections` at a time, with `requests` on each of HTTP/2."""
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
        """Start the transfer of `handle`, which `step` continues."""
        self._multi.add_handle(handle)

    def break_off(self, handle: pycurl.Curl) -> None:
        """Abort the transfer of `handle`."""
        self._multi.remove_handle(handle)

    def step(self, seconds: float) -> None:
        """Let libcurl process what is ready now, or wait at most `seconds` for the first event."""
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
        """Yield the handles that ended, and how; they are removed from the loop."""
        more = 1
        while more:
            more, good, bad = self._multi.info_read()
            for handle, number, text in [*((each, 0, "") for each in good), *bad]:
                self._multi.remove_handle(handle)
                system = os.strerror(handle.getinfo(pycurl.OS_ERRNO)) if number else ""
                yield handle, CurlError(number, text, system)

    def _watch(self, action: int, socket: int, _multi: object, _data: object) -> None:
        """Poll a socket as libcurl demands, or stop that."""
        if action == pycurl.POLL_REMOVE:
            if socket in self._sockets:
                self._sockets.discard(socket)
                with suppress(OSError):  # it was closed before
                    self._poll.unregister(socket)
        elif socket in self._sockets:
            self._poll.modify(socket, _EVENTS[action])
        else:
            self._poll.register(socket, _EVENTS[action])
            self._sockets.add(socket)

    def _set_timer(self, milliseconds: int) -> None:
        self._due = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000
