"""Seconds of work that each address may cause: a stock that is spent, and grows again slowly.

A limit of what runs at once does not bound what one address costs in an hour.  Addresses with a
full stock are forgotten.
"""

import math
import time
from collections.abc import Callable

from huai_server.http.asgi.errors import HttpError

_KEPT = 10_000


class Allowance:
    """`stock` seconds for each address, of which `growth` come back in a second."""

    def __init__(
        self,
        stock: float,
        growth: float,
        *,
        most: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`most`: seconds of one request that count, however long it takes."""
        self._stock = stock
        self._growth = growth
        self._most = most
        self._clock = clock
        self._full: dict[str, float] = {}
        """When the stock of an address is going to be full again."""

    def check(self, address: str) -> None:
        """Raise status 503 for an address without stock; an empty one is unknown, and has some."""
        lacking = (self._full.get(address, 0.0) - self._clock()) * self._growth - self._stock
        if lacking >= 0:
            seconds = math.ceil(lacking / self._growth) + 1
            raise HttpError(
                503,
                "this address has asked for too much",
                hint=f"try again in {seconds} s",
                headers={"Retry-After": str(seconds)},
            )

    def spend(self, address: str, seconds: float) -> None:
        """Take the time of one request from the stock."""
        if address:
            now = self._clock()
            full = max(now, self._full.get(address, 0.0))
            self._full[address] = full + min(seconds, self._most) / self._growth
            if len(self._full) > _KEPT:
                self._full = {each: at for each, at in self._full.items() if at > now}
