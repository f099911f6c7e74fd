import asyncio
from contextlib import suppress
from random import Random

import pytest

from huai_server.http.asgi.errors import HttpError
from huai_server.http.asgi.limiter import Limiter


async def _hold(limiter: Limiter, go: asyncio.Event, address: str = "") -> None:
    async with limiter.slot(address):
        await go.wait()


def test_waiting_has_an_end_and_gives_its_place_back() -> None:
    async def run() -> None:
        limiter, go = Limiter(1, 1, 0.01), asyncio.Event()
        holder = asyncio.ensure_future(_hold(limiter, go))
        for _ in range(3):
            await asyncio.sleep(0)
            with pytest.raises(HttpError):
                await _hold(limiter, go)
        go.set()
        await holder
        await _hold(limiter, go)

    asyncio.run(run())


def test_an_address_has_half_of_the_slots_and_of_the_line() -> None:
    async def run() -> None:
        limiter, go = Limiter(4, 4, 60), asyncio.Event()
        holders = [asyncio.ensure_future(_hold(limiter, go, "a")) for _ in range(4)]
        await asyncio.sleep(0)
        assert limiter.waiting == 2
        with pytest.raises(HttpError):
            await _hold(limiter, go, "a")
        async with limiter.slot("b"), limiter.slot():
            pass  # ahead of the requests that wait for their own address
        go.set()
        await asyncio.gather(*holders)
        assert limiter.waiting == 0

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_cancelled_all_slots_come_back(seed: int) -> None:
    async def visit(limiter: Limiter, random: Random) -> None:
        async with limiter.slot(random.choice(["", "a", "b"])):
            for _ in range(random.randrange(4)):
                await asyncio.sleep(0)

    async def run() -> None:
        random, limiter = Random(seed), Limiter(2, 8, 60)
        tasks = []
        for _ in range(300):
            tasks.append(asyncio.ensure_future(visit(limiter, random)))
            if not random.randrange(3):
                random.choice(tasks).cancel()
            if not random.randrange(2):
                await asyncio.sleep(0)
        async with asyncio.timeout(10):
            for task in tasks:
                with suppress(asyncio.CancelledError, HttpError):
                    await task
            assert limiter.waiting == 0
            async with limiter.slot(), limiter.slot():
                pass

    asyncio.run(run())
