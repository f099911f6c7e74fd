"""How many things may run at once, how many may wait for it, and for how long.

First come, first served.  A slot is given back whatever happens inside it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from huai_server.http.refusal import RefusedError

RETRY_AFTER = 5
"""Seconds after which a refused client may try again."""


class Gate:
    """`limit` slots and a waiting line of `queue` places."""

    def __init__(self, limit: int, queue: int, timeout: float) -> None:
        """`timeout`: seconds that one request waits for a slot at most."""
        self._slots = asyncio.Semaphore(limit)
        self._queue = queue
        self._timeout = timeout
        self.waiting = 0

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold one slot; with the line full, or after waiting too long: refused with 503."""
        if self._slots.locked():
            await self._wait()
        else:
            await self._slots.acquire()
        try:
            yield
        finally:
            self._slots.release()

    async def _wait(self) -> None:
        if self.waiting >= self._queue:
            raise _busy()
        self.waiting += 1
        try:
            async with asyncio.timeout(self._timeout):
                await self._slots.acquire()
        except TimeoutError:
            raise _busy() from None
        finally:
            self.waiting -= 1


def _busy() -> RefusedError:
    return RefusedError(503, "the server is busy", hint="try again later", retry_after=RETRY_AFTER)
