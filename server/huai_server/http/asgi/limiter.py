"""Limits for work: concurrent in all and for each address, with a queue; and seconds of an address.

First come, first served, but a request passes those that wait for their own address's limit.  A
slot is always given back.  A limit on concurrent work does not bound what one address costs in an
hour: its budget is spent, and refills slowly.  Addresses with a full budget are forgotten.
"""

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from huai_server.http.asgi.errors import HttpError

_RETRY_AFTER = {"Retry-After": "5"}
"""Seconds after which a refused client may try again."""
_KEPT = 10_000
"""Addresses that are remembered before those with a full budget are forgotten."""


class _Waiter(NamedTuple):
    """A request in the queue; `turn` is done when it has got a slot."""

    address: str
    turn: "asyncio.Future[None]"


class Limiter:
    """A limit of `limit` slots and `queue` waiting requests; an address gets half of each."""

    def __init__(
        self, limit: int, queue: int, timeout: float, *, per_address: int | None = None
    ) -> None:
        """`timeout`: the most seconds that one request waits for a slot.

        `per_address`: the slots of one address, if not half of all.
        """
        self._limit = self._free = limit
        self._per_address = max(1, limit // 2) if per_address is None else per_address
        self._queue = queue
        self._queue_per_address = max(1, queue // 2)
        self._timeout = timeout
        self._running: Counter[str] = Counter()
        self._waiters: deque[_Waiter] = deque()

    @property
    def running(self) -> int:
        """Return the number of slots in use."""
        return self._limit - self._free

    @property
    def waiting(self) -> int:
        """Return the length of the queue."""
        return len(self._waiters)

    @asynccontextmanager
    async def slot(self, address: str = "") -> AsyncIterator[None]:
        """Wait for a slot, and hold it during the block.

        Raises status 503 if the queue is full or the wait takes too long.  An empty `address` is
        unknown, and counts only for the common limit.
        """
        if self._may_run(address):
            self._occupy(address)
        else:
            await self._wait(address)
        try:
            yield
        finally:
            self._release(address)

    def _may_run(self, address: str) -> bool:
        """True if a slot is free, and the address is below its limit."""
        return self._free > 0 and (not address or self._running[address] < self._per_address)

    def _occupy(self, address: str) -> None:
        self._free -= 1
        self._running[address] += 1

    def _release(self, address: str) -> None:
        """Free a slot, and grant it to the next in the queue."""
        self._free += 1
        self._running[address] -= 1
        if not self._running[address]:
            del self._running[address]
        self._grant()

    def _grant(self) -> None:
        """Give free slots to the first in the queue whose address is below its limit."""
        for waiter in list(self._waiters):
            if not self._free:
                return
            if self._may_run(waiter.address):
                self._waiters.remove(waiter)
                self._occupy(waiter.address)
                waiter.turn.set_result(None)

    async def _wait(self, address: str) -> None:
        """Wait for a slot; raises status 503 if the queue is full or the timeout is over."""
        same = sum(waiter.address == address for waiter in self._waiters) if address else 0
        if len(self._waiters) >= self._queue or same >= self._queue_per_address:
            raise _busy_error()
        waiter = _Waiter(address, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(self._timeout):
                await asyncio.shield(waiter.turn)
        except BaseException as error:
            if waiter.turn.done():  # its turn came in the same moment
                self._release(address)
            else:
                self._waiters.remove(waiter)
            if isinstance(error, TimeoutError):
                raise _busy_error() from None
            raise


def _busy_error() -> HttpError:
    return HttpError(503, "the server is busy", hint="try again later", headers=_RETRY_AFTER)


class Allowance:
    """A limit of `stock` seconds for each address, refilled by `growth` seconds in a second."""

    def __init__(
        self,
        stock: float,
        growth: float,
        *,
        most: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`most`: the most seconds charged for one request."""
        self._stock = stock
        self._growth = growth
        self._most = most
        self._clock = clock
        self._full_at: dict[str, float] = {}
        """The time at which the stock of each address is full again."""

    def check(self, address: str) -> None:
        """Raise status 503 for an address without stock; an unknown (empty) one is not limited."""
        lacking = (self._full_at.get(address, 0.0) - self._clock()) * self._growth - self._stock
        if lacking >= 0:
            seconds = math.ceil(lacking / self._growth) + 1
            raise HttpError(
                503,
                "this address has sent too many costly requests",
                hint=f"try again in {seconds} s",
                headers={"Retry-After": str(seconds)},
            )

    def spend(self, address: str, seconds: float) -> None:
        """Charge an address for a request, at most `most` seconds; an empty one is not charged."""
        if address:
            now = self._clock()
            full = max(now, self._full_at.get(address, 0.0))
            self._full_at[address] = full + min(seconds, self._most) / self._growth
            if len(self._full_at) > _KEPT:
                self._full_at = {each: at for each, at in self._full_at.items() if at > now}
