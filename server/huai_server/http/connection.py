"""One client's connection: uvicorn's, with bounds on how a request's head may arrive.

uvicorn waits for ever for a head that never ends, and keeps all of it.
"""

import asyncio
from typing import TYPE_CHECKING, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

HEAD_BYTES = 64 << 10


class Connection(HttpToolsProtocol):
    """Closed if a head takes longer than `head_seconds` or more than `HEAD_BYTES`."""

    head_seconds: ClassVar[float] = 20.0
    _deadline: asyncio.TimerHandle | None = None
    _head_size = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The clock runs before the first byte has come."""
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        """Count what belongs to an unfinished head."""
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._deadline is not None:
            self._head_size += len(data)
            if self._head_size > HEAD_BYTES:
                self.transport.close()
        elif self._is_idle():
            self._expect_head()

    def on_headers_complete(self) -> None:
        """The head is there; what follows has limits of its own."""
        self._stop_clock()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing to wait for any more."""
        self._stop_clock()
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        """Between requests, and without uvicorn's own clock for that (data stops it)."""
        cycle: RequestResponseCycle | None = self.cycle
        return (cycle is None or cycle.response_complete) and self.timeout_keep_alive_task is None

    def _expect_head(self) -> None:
        self._deadline = self.loop.call_later(self.head_seconds, self.transport.close)

    def _stop_clock(self) -> None:
        self._head_size = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def connection_class(head_seconds: float) -> type[Connection]:
    """What uvicorn makes for each client; it takes a class, so the bound has to be in one."""
    return type("BoundConnection", (Connection,), {"head_seconds": head_seconds})
