"""Seconds of work that each address may cause: a budget that is spent, and refills slowly.

A limit on concurrent work does not bound what one address costs in an hour.  Addresses with a full
budget are forgotten.
"""

import math
import time
from collections.abc import Callable

from huai_server.http.asgi.errors import HttpError

_KEPT = 10_000


class Allowance:
    """A limit of `stock` seconds for each address, refilled by `growth` in a second."""

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
        self._full: dict[str, float] = {}
        """The time at which the stock of an address is full again."""

    def check(self, address: str) -> None:
        """Raise status 503 for an address without stock; an unknown (empty) one is not limited."""
        lacking = (self._full.get(address, 0.0) - self._clock()) * self._growth - self._stock
        if lacking >= 0:
            seconds = math.ceil(lacking / self._growth) + 1
            raise HttpError(
                503,
                "this address has sent too many costly requests",
                hint=f"try again in {seconds} s",
                headers={"Retry-After": str(seconds)},
            )

    def spend(self, address: str, seconds: float) -> None:
        """Charge the seconds of one request."""
        if address:
            now = self._clock()
            full = max(now, self._full.get(address, 0.0))
            self._full[address] = full + min(seconds, self._most) / self._growth
            if len(self._full) > _KEPT:
                self._full = {each: at for each, at in self._full.items() if at > now}
